-- name: channel
select 'outlast_' || 'revs'::regclass::oid

-- name: in_use
select pg_advisory_lock_shared(lock_class('meta') | 1)

-- name: try_in_use
select pg_try_advisory_lock_shared(lock_class('meta') | 1)

-- name: last
select pg_notify($1, '')

-- name: probe_select
select pg_advisory_lock(lock_class('meta') | $1)

-- name: probe_take
select pg_try_advisory_lock(lock_class('meta') | $1)

-- name: probe_unlock
select pg_advisory_unlock(lock_class('meta') | $1)

-- name: say_alive
update workers set seen = (extract(epoch from clock_timestamp()) * 1000)::bigint
  where nr = any($1::bigint[])

-- name: let_go
select pg_advisory_unlock(lock_class('workers') | $1)

-- name: let_all_go
select pg_advisory_unlock_all()

-- name: lock
select pg_advisory_lock(lock_class('workers') | $1)
