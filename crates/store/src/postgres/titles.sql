-- name: state
select
  greatest((select coalesce(max(segment) + 1, 0) from title_segments), (select min(seq) >> 12 from jobs)) as next,
  (select coalesce(max(seq) >> 12, 0) from jobs) as newest,
  pg_snapshot_xmin(pg_current_snapshot())::text::bigint as ended,
  pg_snapshot_xmax(pg_current_snapshot())::text::bigint as begun

-- name: titles_end
select coalesce(max(segment) + 1, 0) as next from title_segments

-- name: sets_of_all
select found.* from generate_series($1::bigint, $2::bigint - 1) as wanted (segment)
  cross join lateral (select segment, part, jobs from title_parts where title_parts.segment = wanted.segment
    and part = any($3::bigint[]) offset 0) as found

-- name: sets_of_one
select found.* from generate_series($1::bigint, $2::bigint - 1) as wanted (segment)
  cross join lateral (select segment, part, jobs from title_parts where title_parts.segment = wanted.segment
    and part between $3 and $4 offset 0) as found

-- name: alone
select pg_try_advisory_xact_lock(lock_class('title_segments')) as is_alone

-- name: titles
select seq, owner, title_folded from jobs where seq >= $1 and seq < $2 order by seq

-- name: forget_old
delete from title_parts where segment < (select min(seq) >> 12 from jobs)

-- name: add
insert into title_parts (segment, part, jobs)
  select $1, part, jobs from unnest($2::bigint[], $3::bytea[]) as added (part, jobs)

-- name: index_next
insert into title_segments (segment) values ($1)
