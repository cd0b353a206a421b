-- name: add
INSERT INTO workers (worker, profile) VALUES (?1, ?2) ON CONFLICT DO NOTHING

-- name: remove
DELETE FROM workers WHERE worker = ?1

-- name: all
SELECT DISTINCT worker FROM workers

-- name: of_profile
SELECT worker FROM workers WHERE profile = ?1

-- name: holders
SELECT DISTINCT worker FROM jobs WHERE state = 'running'
