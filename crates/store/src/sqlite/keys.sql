-- name: find
SELECT * FROM keys WHERE owner = ?1 AND text = ?2

-- name: of_job
SELECT * FROM keys WHERE job = ?1

-- name: text_of
SELECT text FROM keys WHERE job = ?1

-- name: put
DELETE FROM keys WHERE owner = ?1 AND text = ?2 RETURNING job

-- name: save_answered
UPDATE keys SET answered_at = ?2 WHERE job = ?1
