-- name: step
SELECT steps.*, step_outputs.output FROM steps LEFT JOIN step_outputs USING (job, key)
  WHERE steps.job = ?1 AND steps.key = ?2

-- name: count
SELECT count(*) FROM steps WHERE job = ?1

-- name: add_output
INSERT INTO step_outputs (job, key, output) VALUES (?1, ?2, ?3)

-- name: save_bytes
UPDATE jobs SET bytes = ?2 WHERE seq = ?1

-- name: has_read
SELECT EXISTS (SELECT 1 FROM step_pages WHERE job = ?1 AND owner = ?2 AND digest = ?3)

-- name: add_reader
INSERT INTO step_pages (job, owner, digest) VALUES (?1, ?2, ?3)

-- name: steps
SELECT steps.* FROM steps WHERE job = (SELECT seq FROM jobs WHERE id = ?1 AND (?2 IS NULL OR owner = ?2))
  ORDER BY started_at, key

-- name: step_outputs
SELECT steps.key, steps.kind, step_outputs.output FROM steps JOIN step_outputs USING (job, key)
  WHERE steps.job = (SELECT seq FROM jobs WHERE id = ?1 AND (?2 IS NULL OR owner = ?2))
    AND steps.kind IN (SELECT value FROM json_each(?3))
  ORDER BY steps.started_at, steps.key

-- name: page
SELECT * FROM pages WHERE owner = ?1 AND digest = ?2

-- name: bytes
SELECT (SELECT coalesce(sum(octet_length(key) + octet_length(kind) + ?2), 0) FROM steps WHERE job = ?1)
  + (SELECT coalesce(sum(octet_length(output)), 0) FROM step_outputs WHERE job = ?1)
  + (SELECT coalesce(sum(octet_length(text) + octet_length(url) + octet_length(final_url) + ?2), 0)
     FROM step_pages JOIN pages USING (owner, digest) WHERE job = ?1)

-- name: copy_steps
INSERT INTO steps (job, key, kind, input_digest, state, fence, bound_nano, spent_nano, tokens_in, tokens_out, resent,
    started_at, ended_at)
  SELECT ?2, key, kind, input_digest, state, CASE WHEN ?3 AND state = 'sending' THEN 0 ELSE fence END, bound_nano,
    spent_nano, tokens_in, tokens_out, resent, started_at, ended_at FROM steps WHERE job = ?1

-- name: move_outputs
UPDATE step_outputs SET job = ?2 WHERE job = ?1

-- name: remove_steps
DELETE FROM steps WHERE job = ?1

-- name: remove_pages
DELETE FROM step_pages WHERE job = ?1

-- name: ended_before
SELECT seq FROM jobs WHERE provider = ?1 AND ended_at < ?2
    AND EXISTS (SELECT 1 FROM steps WHERE steps.job = jobs.seq) ORDER BY seq

-- name: move_pages
UPDATE step_pages SET job = ?2 WHERE job = ?1

-- name: steps_of_job
SELECT steps.*, step_outputs.output FROM steps LEFT JOIN step_outputs USING (job, key)
  WHERE steps.job = ?1 ORDER BY steps.key

-- name: pages_of_job
SELECT pages.* FROM step_pages JOIN pages USING (owner, digest) WHERE step_pages.job = ?1 ORDER BY digest
