-- name: move_row
UPDATE ledger SET job = ?1, run = 1, state = CASE state WHEN 'spent' THEN 'spent' ELSE 'reserved' END
  WHERE (job, run) IN (
  SELECT job, run FROM ledger WHERE remote = ?2 AND owner = ?3 AND state IN ('maybe', 'spent')
  ORDER BY state = 'maybe' DESC, at DESC LIMIT 1)

-- name: remove
DELETE FROM ledger WHERE job = ?1 AND run = ?2

-- name: latest
SELECT * FROM ledger WHERE job = ?1 ORDER BY run DESC LIMIT 1

-- name: of_job
SELECT * FROM ledger WHERE job = ?1 AND (?2 IS NULL OR owner = ?2) ORDER BY run

-- name: has_old
SELECT EXISTS (SELECT 1 FROM ledger WHERE day <= ?1 AND (?2 IS NULL OR owner = ?2))

-- name: record_sweep
INSERT OR IGNORE INTO ledger_sweeps (day) VALUES (?1)

-- name: forget_sweeps
DELETE FROM ledger_sweeps WHERE day < ?1

-- name: sweeps
SELECT day FROM ledger_sweeps

-- name: remove_old
DELETE FROM ledger WHERE day <= ?1 AND (?2 IS NULL OR owner = ?2)

-- name: after
SELECT * FROM ledger WHERE (job, run) > (?1, ?2) ORDER BY job, run LIMIT ?3
