-- name: rev
insert into revs (job, rev) values ($1, $2)

-- name: owner
insert into owners (owner) values ($1) on conflict do nothing

-- name: delete_keys
delete from keys where job > $1 and job <= $2

-- name: delete_revs
delete from revs where job > $1 and job <= $2

-- name: delete_bodies
delete from bodies where job > $1 and job <= $2

-- name: delete_jobs
delete from jobs where seq > $1 and seq <= $2

-- name: count
select count(*) as jobs, count(*) filter (where ended_at is null) as unfinished,
  (select count(*) from ledger) as runs from jobs

-- name: sizes
select seq, bytes from jobs where seq > $1 order by seq limit $2

-- name: source
select copying from meta

-- name: begin
update meta set copying = $1

-- name: clear_ledger
delete from ledger
