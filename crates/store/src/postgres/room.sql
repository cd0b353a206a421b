-- name: add_up
with moved as (delete from room where owner = $1 returning bytes)
  update owners set bytes = bytes + coalesce((select sum(bytes) from moved), 0)::bigint
  where owner = $1 returning bytes

-- name: moved
insert into room (owner, bytes) select owner, sum(bytes)::bigint
  from unnest($1::text[], $2::bigint[]) as moved (owner, bytes) group by owner
