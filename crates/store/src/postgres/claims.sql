-- name: candidates
with recursive
  moment as materialized (select coalesce($2::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) as now),
  heads as (
    select profile, (select owner from jobs where state = 'queued' and visibility = 'promised'
        and profile = wanted.profile order by owner limit 1) as owner
    from unnest($1::text[]) as wanted (profile)
    union all
    select profile, (select owner from jobs where state = 'queued' and visibility = 'promised'
        and profile = heads.profile and owner > heads.owner order by owner limit 1)
    from heads where owner is not null),
  waiting as (select distinct owner from heads where owner is not null),
  running as (select owner, count(*) as running from jobs
    where state = 'running' and visibility = 'promised' group by owner),
  in_turn as (select owner, coalesce(running, 0) as running, coalesce(claim, 0) as served, arrived
    from waiting join owners using (owner) left join running using (owner) left join served using (owner)
    order by 2, 3, 4)
  select owner, running, served, arrived, seq, priority from in_turn cross join lateral (
    select due.seq, due.priority from unnest($1::text[]) as wanted (profile) cross join lateral (
      select seq, priority from jobs, moment
      where state = 'queued' and visibility = 'promised' and profile = wanted.profile and jobs.owner = in_turn.owner
        and (run_at <= moment.now or updated_at > moment.now)
      order by priority desc, seq limit $3::bigint) as due
    order by due.priority desc, due.seq limit $3::bigint) as head
  limit 4 * $3::bigint

-- name: lock
select seq from jobs where seq = any($1::bigint[]) and state || '' = 'queued'
  order by array_position($1::bigint[], seq) limit $2::bigint for update skip locked

-- name: served
insert into served (owner, claim) select owner, claim
  from (select owner, nextval('claims') as claim from unnest($1::text[]) as owner) as served_now order by owner
  on conflict (owner) do update set claim = excluded.claim

-- name: know_worker
insert into worker_profiles (profile, worker) select unnest($1::text[]), $2 on conflict do nothing
