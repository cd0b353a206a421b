-- name: rev
select safe from seen_revs()

-- name: unclaimed_held_calls
select id from jobs where state = 'queued' and visibility <> 'promised'
  and profile = any($1::text[]) order by seq

-- name: pending_stops
select id, checkpoint from jobs where remote = 'owed' and profile = any($1::text[])
  order by seq limit $2

-- name: count_queued
select count(*) as jobs from jobs where state = 'queued' and visibility = 'promised'
  and profile = any($1::text[])

-- name: places
with mine as (select seq, priority, profile, owner from jobs
    where id = $1 and state = 'queued' and visibility = 'promised')
  select jobs.owner = mine.owner as is_mine, arrived, coalesce(claim, 0) as served,
    (select count(*) from jobs as busy where busy.owner = jobs.owner and busy.state = 'running'
       and busy.visibility = 'promised') as running,
    count(*) filter (where jobs.owner <> mine.owner or jobs.priority > mine.priority
       or (jobs.priority = mine.priority and jobs.seq < mine.seq)) as before
  from mine join jobs using (profile) join owners on owners.owner = jobs.owner
    left join served on served.owner = jobs.owner
  where jobs.state = 'queued' and jobs.visibility = 'promised'
  group by jobs.owner, mine.owner, arrived, claim

-- name: ledger_rows
select * from ledger where job = $1 and ($2::text is null or owner = $2) order by run

-- name: get_setting
select value from kept where name = $1

-- name: put_setting
insert into kept (name, value) values ($1, $2)
  on conflict (name) do update set value = excluded.value

-- name: create_setting
-- The update of an existing row changes nothing, and returns the row of a transaction that was first.
insert into kept (name, value) values ($1, $2)
  on conflict (name) do update set value = kept.value returning value

-- name: renew
with held as (select jobs.seq from jobs
    join unnest($1::text[], $2::text[], $3::bigint[]) as lease (id, worker, fence)
      on jobs.id = lease.id and jobs.worker = lease.worker and jobs.fence = lease.fence
    where state = 'running' order by jobs.seq for update of jobs)
  update jobs set lease_until = coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) + $5
  from held where jobs.seq = held.seq returning jobs.id, jobs.fence

-- name: record_answer
update keys set answered_at = $2 where job = $1
