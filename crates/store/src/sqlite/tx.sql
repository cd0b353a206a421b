-- name: next_rev
UPDATE meta SET value = value + 1 WHERE name = 'rev'

-- name: rev
SELECT value FROM meta WHERE name = 'rev'
