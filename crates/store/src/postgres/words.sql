-- name: take
delete from unindexed where nr in (
  select nr from unindexed order by nr limit $1 for update skip locked) returning job

-- name: put
insert into search (job, words) values ($1, array_to_tsvector($2::text[]))
  on conflict (job) do update set words = excluded.words

-- name: has_owed
select 1 from unindexed limit 1

-- name: lock_jobs
select 1 from jobs where seq = any($1::bigint[]) order by seq for key share
