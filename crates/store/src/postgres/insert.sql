-- name: know_owner
insert into owners (owner) values ($1) on conflict do nothing returning owner

-- name: forget_owner
delete from owners where owner = $1

-- name: lock_owner
select owner from owners where owner = $1 for update

-- name: standing
select
  (select id from jobs where owner = $1 and conversation = $2 and ended_at is null) as busy,
  (select coalesce(max(turn), 0) from jobs where owner = $1 and conversation = $2) as last_turn,
  (select count(*) from jobs where owner = $1 and ended_at is null) as unfinished,
  $3::text is not null and not exists (select 1 from jobs where id = $3 and owner = $1) as lacks_subject,
  nextval(pg_get_serial_sequence('jobs', 'seq')) as seq

-- name: add_bytes
update owners set bytes = bytes + $2 where owner = $1

-- name: promise
update jobs set visibility = $2, keep = $3 where seq = $1

-- name: keep_by_key
update jobs set removable_at = $2 where seq = $1
