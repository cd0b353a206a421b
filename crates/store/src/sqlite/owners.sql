-- name: in_turn
SELECT owner FROM owners WHERE queued > 0 ORDER BY running, served, arrived

-- name: head
SELECT -priority, seq FROM jobs
  WHERE state = 'queued' AND visibility = 'promised' AND profile = ?1 AND owner = ?2
    AND (run_at <= ?3 OR updated_at > ?3)
  ORDER BY priority DESC, seq LIMIT 1

-- name: mine
SELECT running, served, arrived, profile, owner,
    (SELECT count(*) FROM jobs AS other
     WHERE other.state = 'queued' AND other.visibility = 'promised'
       AND other.profile = jobs.profile AND other.owner = jobs.owner
       AND (other.priority > jobs.priority OR (other.priority = jobs.priority AND other.seq < jobs.seq))) AS before
  FROM jobs JOIN owners USING (owner)
  WHERE id = ?1 AND state = 'queued' AND visibility = 'promised'

-- name: others
SELECT running, served, arrived,
    (SELECT count(*) FROM jobs
     WHERE state = 'queued' AND visibility = 'promised' AND profile = ?1 AND jobs.owner = owners.owner) AS waiting
  FROM owners WHERE queued > 0 AND owner <> ?2

-- name: bytes
SELECT bytes FROM owners WHERE owner = ?1
