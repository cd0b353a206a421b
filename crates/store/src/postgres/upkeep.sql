-- name: missing_body
select 'job ' || id || ' has no body' as line from jobs
  where not exists (select 1 from bodies where bodies.job = jobs.seq) limit 100

-- name: missing_rev
select 'job ' || id || ' has no change number' as line from jobs
  where not exists (select 1 from revs where revs.job = jobs.seq) limit 100

-- name: early_output
select 'job ' || id || ' is ' || state || ' and has an output' as line from jobs join bodies on bodies.job = jobs.seq
  where state <> 'succeeded' and (output is not null or text is not null) limit 100

-- name: owner_bytes
select 'owner ' || owners.owner || ' has wrong counts' as line from owners
  where bytes + (select coalesce(sum(room.bytes), 0) from room where room.owner = owners.owner)
    <> (select coalesce(sum(jobs.bytes), 0) from jobs where jobs.owner = owners.owner) limit 100

-- name: reserved_run
select 'run ' || run || ' of job ' || job || ' is reserved, and the job is not unfinished' as line from ledger
  where state = 'reserved' and not exists (select 1 from jobs where id = job and ended_at is null) limit 100

-- name: day_sums
select 'the sums of owner ' || owner || ' on day ' || day || ' are not those of the ledger' as line from (
    select * from ledger_days union all select * from ledger_changes union all
    select owner, day, provider, model is not null, coalesce(model, ''), state, -1, -(counted / 1000000000), -(counted % 1000000000)
    from (select *, case state when 'spent' then amount else coalesce(reserved, 0) end as counted
          from ledger where state <> 'released') as counted) as days
  group by owner, day, provider, has_model, model, state
  having sum(runs) <> 0 or sum(dollars) <> 0 or sum(rest) <> 0 limit 100

-- name: step_outputs
select 'step ' || steps.key || ' of job ' || jobs.id || ' is ' || steps.state
    || case when output is null then ' and has no output' else ' and has an output' end as line
  from steps join jobs on jobs.seq = steps.job
    left join step_outputs on step_outputs.job = steps.job and step_outputs.key = steps.key
  where (steps.state = 'sending') = (output is not null) limit 100

-- name: unread_page
select 'page ' || url || ' of ' || owner || ' belongs to no job' as line from pages
  where not exists (select 1 from step_pages where step_pages.owner = pages.owner and step_pages.digest = pages.digest)
  limit 100

-- name: server
select current_setting('server_version') as server, pg_is_in_recovery() as is_standby,
  coalesce(has_schema_privilege(current_schema(), 'create'), false) as may_create,
  (select count(*) from pg_stat_activity where backend_type = 'client backend') as connections,
  current_setting('max_connections')::bigint as allowed

-- name: look
select (select count(*) from jobs where ended_at is null) as unfinished,
  (select count(*) from workers where seen > (extract(epoch from clock_timestamp()) * 1000)::bigint - 30000
     or exists (select 1 from pg_locks where locktype = 'advisory' and objsubid = 1 and granted
       and mode = 'ExclusiveLock'
       and ((classid::bigint << 32) | objid::bigint) = (lock_class('workers') | workers.nr))) as live_workers
