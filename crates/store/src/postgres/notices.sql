-- name: add
insert into notices (job, body, due_at) values ($1, $2, $3)
  on conflict (job) do update set body = excluded.body, due_at = excluded.due_at, tries = notices.tries + 1

-- name: claim
-- Concurrent callers each get a different notice, or none.
with next as (
  select seq from notices where due_at <= coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint)
  order by due_at, seq limit 1 for update skip locked)
update notices set tries = tries + 1,
  due_at = coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) + $2
from next where notices.seq = next.seq returning job as id, body, tries

-- name: next_due
select min(due_at) as next from notices

-- name: remove
delete from notices where job = $1 and tries = $2

-- name: put_off
update notices set due_at = coalesce($3::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) + $4
where job = $1 and tries = $2
