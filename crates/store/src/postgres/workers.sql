-- name: workers
select coalesce(workers.worker, holders.worker) as worker, workers.nr,
    holders.worker is not null as holds_jobs, exists (select 1 from pg_locks
      where locktype = 'advisory' and objsubid = 1 and granted and mode = 'ExclusiveLock'
        and ((classid::bigint << 32) | objid::bigint) = (lock_class('workers') | workers.nr)
        and database = (select oid from pg_database where datname = current_database())) as is_locked,
    coalesce(workers.seen > (extract(epoch from clock_timestamp()) * 1000)::bigint - $1, false) as was_seen
  from workers full join (select distinct worker from jobs where state = 'running') as holders
    on holders.worker = workers.worker

-- name: show_life
insert into workers (worker) values ($1)
  on conflict (worker) do update set worker = excluded.worker returning nr

-- name: has_worker
select worker from worker_profiles where profile = $1

-- name: is_standby
select pg_is_in_recovery() as is_standby

-- name: forget
with profiles as (delete from worker_profiles where worker = any($1::text[]))
  delete from workers where worker = any($1)

-- name: put_back
select $1::bigint is null or pg_try_advisory_xact_lock_shared(lock_class('workers') | $1) as is_free
