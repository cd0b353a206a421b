-- name: look
SELECT count(*) FROM jobs WHERE ended_at IS NULL
