-- name: lock
select seq from jobs where id = any($1::text[]) order by seq for update
