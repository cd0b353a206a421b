-- name: has_expired
SELECT EXISTS (SELECT 1 FROM jobs WHERE state = 'running' AND lease_until <= ?1)

-- name: rev
SELECT value FROM meta WHERE name = 'rev'

-- name: changes
SELECT id, state, visibility, fence, conversation FROM jobs
  WHERE rev > ?1 ORDER BY rev, seq

-- name: next_due_queued
SELECT min(run_at) FROM jobs WHERE state = 'queued' AND run_at > ?1

-- name: next_due_leased
SELECT min(lease_until) FROM jobs WHERE state = 'running'

-- name: newest_about
SELECT seq FROM jobs
  WHERE subject = :subject AND (:owner IS NULL OR owner = :owner) AND (expires_at IS NULL OR expires_at > :now)
    AND (:states = '[]' OR state IN (SELECT value FROM json_each(:states)))
  ORDER BY seq DESC LIMIT 1
