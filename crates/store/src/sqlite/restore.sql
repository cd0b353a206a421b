-- name: count_jobs
SELECT count(*) FROM jobs

-- name: raise_rev
UPDATE meta SET value = max(value, ?1) WHERE name = 'rev'

-- name: set_max_failures
UPDATE jobs SET max_failures = ?2 WHERE seq = ?1

-- name: unfinished
SELECT seq FROM jobs WHERE ended_at IS NULL ORDER BY seq
