-- name: now
select (extract(epoch from clock_timestamp()) * 1000)::bigint

-- name: set_max_failures
update jobs set max_failures = $2 where seq = $1
