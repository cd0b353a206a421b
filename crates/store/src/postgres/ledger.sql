-- name: after
select * from ledger where (job, run) > ($1::text, $2::bigint) order by job, run limit $3

-- name: of_jobs
select * from ledger where job = any($1::text[]) order by job, run

-- name: lock_owner
select owner from owners where owner = $1 for update

-- name: move_row
update ledger set job = $1, run = 1, state = case state when 'spent' then 'spent' else 'reserved' end
  where (job, run) in (
    select job, run from ledger where remote = $2 and owner = $3 and state in ('maybe', 'spent')
    order by state = 'maybe' desc, at desc limit 1)

-- name: remove
delete from ledger where job = $1 and run = $2

-- name: many_changes
select 1 from ledger_changes offset $1 limit 1

-- name: has_old
select 1 from ledger where day <= $1 and ($2::text is null or owner = $2) limit 1

-- name: fold_alone
select pg_try_advisory_xact_lock(lock_class('ledger_changes')) as is_alone

-- name: record_sweep
insert into ledger_sweeps (day) values ($1) on conflict do nothing

-- name: forget_sweeps
delete from ledger_sweeps where day < $1

-- name: sweeps
select day from ledger_sweeps

-- name: remove_empty_days
delete from ledger_days where day <= $1 and runs = 0

-- name: remove_old
delete from ledger where day <= $1 and ($2::text is null or owner = $2)
