-- name: renew
UPDATE jobs SET lease_until = ?1
  WHERE id = ?2 AND state = 'running' AND worker = ?3 AND fence = ?4

-- name: show_text
INSERT INTO partials (job, text) SELECT seq, ?4 FROM jobs
  WHERE id = ?1 AND state = 'running' AND worker = ?2 AND fence = ?3
  ON CONFLICT (job) DO UPDATE SET text = excluded.text

-- name: rescue_workers
SELECT seq FROM jobs WHERE state = 'running' AND worker = ?1

-- name: rescue_expired
SELECT seq FROM jobs WHERE state = 'running' AND lease_until <= ?1

-- name: rescue_unheld
SELECT seq FROM jobs WHERE state = 'running' AND lease_until <= ?1
