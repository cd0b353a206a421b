-- name: add
INSERT INTO notices (job, body, due_at) VALUES (?1, ?2, ?3)
  ON CONFLICT (job) DO UPDATE SET body = excluded.body, due_at = excluded.due_at, tries = tries + 1

-- name: next_due
SELECT min(due_at) FROM notices

-- name: claim
UPDATE notices SET due_at = ?2, tries = tries + 1
  WHERE seq = (SELECT seq FROM notices WHERE due_at <= ?1 ORDER BY due_at, seq LIMIT 1)
  RETURNING job, body, tries

-- name: remove
DELETE FROM notices WHERE job = ?1 AND tries = ?2

-- name: put_off
UPDATE notices SET due_at = ?3 WHERE job = ?1 AND tries = ?2
