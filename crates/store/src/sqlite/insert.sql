-- name: unfinished
SELECT count(*) FROM jobs INDEXED BY jobs_unfinished WHERE owner = ?1 AND ended_at IS NULL

-- name: has_subject
SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND owner = ?2)

-- name: promise
UPDATE jobs SET visibility = ?2, keep = ?3 WHERE seq = ?1
