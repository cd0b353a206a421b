-- name: integrity
SELECT integrity_check FROM pragma_integrity_check

-- name: missing_body
SELECT 'job ' || id || ' has no body' FROM jobs
  WHERE NOT EXISTS (SELECT 1 FROM bodies WHERE bodies.job = jobs.seq)

-- name: early_output
SELECT 'job ' || id || ' is ' || state || ' and has an output'
  FROM jobs JOIN bodies ON bodies.job = jobs.seq
  WHERE state <> 'succeeded' AND (output IS NOT NULL OR text IS NOT NULL)

-- name: busy_conversation
SELECT 'conversation ' || conversation || ' of ' || owner || ' has ' || count(*) || ' unfinished jobs'
  FROM jobs NOT INDEXED
  WHERE conversation IS NOT NULL AND ended_at IS NULL
  GROUP BY owner, conversation HAVING count(*) > 1

-- name: unassigned_rev
SELECT 'job ' || id || ' has a change number that was never given out' FROM jobs
  WHERE rev > (SELECT value FROM meta WHERE name = 'rev')

-- name: owner_counts
SELECT 'owner ' || owner || ' has wrong counts' FROM owners
  WHERE (queued, running, bytes) <> (
    SELECT count(*) FILTER (WHERE state = 'queued' AND visibility = 'promised'),
      count(*) FILTER (WHERE state = 'running' AND visibility = 'promised'), coalesce(sum(jobs.bytes), 0)
    FROM jobs WHERE jobs.owner = owners.owner)
  UNION ALL SELECT 'owner ' || owner || ' is not known' FROM jobs
  WHERE owner NOT IN (SELECT owner FROM owners) GROUP BY owner

-- name: reserved_run
SELECT 'run ' || run || ' of job ' || job || ' is reserved, and the job is not unfinished' FROM ledger
  WHERE state = 'reserved' AND job NOT IN (SELECT id FROM jobs WHERE ended_at IS NULL)

-- name: day_sums
SELECT 'the sums of owner ' || owner || ' on day ' || day || ' are not those of the ledger' FROM (
    SELECT * FROM ledger_days UNION ALL
    SELECT owner, day, provider, model IS NOT NULL, coalesce(model, ''), state, -1, -(counted / 1000000000), -(counted % 1000000000)
    FROM (SELECT *, CASE state WHEN 'spent' THEN amount ELSE coalesce(reserved, 0) END AS counted
          FROM ledger WHERE state <> 'released'))
  GROUP BY owner, day, provider, has_model, model, state HAVING sum(runs) <> 0 OR sum(dollars) <> 0 OR sum(rest) <> 0

-- name: step_outputs
SELECT 'step ' || key || ' of job ' || id || ' is ' || steps.state || iif(output IS NULL, ' and has no output', ' and has an output')
  FROM steps JOIN jobs ON jobs.seq = steps.job LEFT JOIN step_outputs USING (job, key)
  WHERE (steps.state = 'sending') = (output IS NOT NULL)

-- name: unread_page
SELECT 'page ' || url || ' of ' || owner || ' belongs to no job' FROM pages
  WHERE NOT EXISTS (SELECT 1 FROM step_pages WHERE step_pages.owner = pages.owner AND step_pages.digest = pages.digest)

-- name: times
SELECT seq, expires_at, removable_at FROM jobs
