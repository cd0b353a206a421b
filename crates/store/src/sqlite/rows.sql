-- name: whole
SELECT jobs.*, bodies.ask, bodies.output, bodies.text IS NOT NULL AS has_text,
    CASE jobs.state WHEN 'running' THEN (SELECT text FROM partials WHERE partials.job = jobs.seq) END AS partial
  FROM jobs JOIN bodies ON bodies.job = jobs.seq

-- name: save_removable_at
UPDATE jobs SET removable_at = ?2 WHERE seq = ?1

-- name: add_body
INSERT INTO bodies (job, ask) VALUES (?1, ?2)
