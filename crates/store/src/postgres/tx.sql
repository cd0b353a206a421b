-- name: now
select coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint),
  'meta'::regclass::oid::bigint, (select last_value - (not is_called)::int from rev)

-- name: changed
insert into revs (job, rev)
  select job, rev from (select next_rev() as rev) as next, unnest($1::bigint[]) as job
  on conflict (job) do update set rev = excluded.rev returning rev
