-- name: whole
SELECT jobs.*, bodies.ask, bodies.output, bodies.text IS NOT NULL AS has_text,
    CASE jobs.state WHEN 'running' THEN (SELECT text FROM partials WHERE partials.job = jobs.seq) END AS partial,
    (SELECT questions FROM questions WHERE questions.job = jobs.seq) AS questions
  FROM jobs JOIN bodies ON bodies.job = jobs.seq

-- name: save_removable_at
UPDATE jobs SET removable_at = ?2 WHERE seq = ?1 AND removable_at IS NOT ?2

-- name: add_body
INSERT INTO bodies (job, ask) VALUES (?1, ?2)

-- name: light
SELECT *, (SELECT questions FROM questions WHERE questions.job = jobs.seq) AS questions FROM jobs
