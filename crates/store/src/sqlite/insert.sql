-- name: unfinished
SELECT count(*) FROM jobs INDEXED BY jobs_unfinished WHERE owner = ?1 AND ended_at IS NULL

-- name: promise
UPDATE jobs SET visibility = ?2, keep = ?3 WHERE seq = ?1
