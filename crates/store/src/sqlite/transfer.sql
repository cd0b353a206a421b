-- name: source
SELECT value FROM meta WHERE name = ?1

-- name: sizes
SELECT seq, bytes FROM jobs WHERE seq > ?1 ORDER BY seq LIMIT ?2

-- name: jobs
SELECT raw FROM bodies WHERE job = ?1

-- name: begin
INSERT INTO meta VALUES (?1, ?2)

-- name: replace
DELETE FROM jobs WHERE seq > ?1 AND seq <= ?2

-- name: clear_ledger
DELETE FROM ledger

-- name: raise_rev
UPDATE meta SET value = max(value, (SELECT coalesce(max(rev), 0) FROM jobs)) WHERE name = 'rev'

-- name: forget_source
DELETE FROM meta WHERE name = ?1

-- name: set_rev
UPDATE jobs SET rev = ?2 WHERE seq = ?1
