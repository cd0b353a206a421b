-- Schema 2: keys of held calls, removal by age, workers that can be asked after.

-- A key knows when it was made and for how long it holds. Until now all were of one kind, made with their job.
CREATE TABLE keys_2 (
  owner      TEXT NOT NULL,
  text       TEXT NOT NULL,
  job        INTEGER NOT NULL REFERENCES jobs (seq) ON DELETE CASCADE,
  input_hash BLOB NOT NULL,
  made_at    INTEGER NOT NULL,
  holds      TEXT NOT NULL CHECK (holds IN ('for', 'until_answered')),
  span       INTEGER NOT NULL,         -- 'for': from made_at on; 'until_answered': from the job's end on, at most
  PRIMARY KEY (owner, text)
) STRICT, WITHOUT ROWID;

INSERT INTO keys_2 (owner, text, job, input_hash, made_at, holds, span)
  SELECT keys.owner, keys.text, keys.job, keys.input_hash, jobs.created_at, 'for', keys.until - jobs.created_at
  FROM keys JOIN jobs ON jobs.seq = keys.job;

-- When age alone allows to remove a job: `rules::removable_at`.
ALTER TABLE jobs ADD COLUMN removable_at INTEGER;

UPDATE jobs SET removable_at = max(expires_at, coalesce((SELECT max(until) FROM keys WHERE job = jobs.seq), expires_at))
  WHERE expires_at IS NOT NULL AND remote IS NOT 'owed';

CREATE INDEX jobs_removable ON jobs (removable_at) WHERE removable_at IS NOT NULL;

DROP TABLE keys;
ALTER TABLE keys_2 RENAME TO keys;
CREATE UNIQUE INDEX keys_job ON keys (job);

-- Who has claimed, and for what. Believed only together with the worker's lock: see liveness.rs.
CREATE TABLE workers (
  worker  TEXT NOT NULL,
  profile TEXT NOT NULL,
  PRIMARY KEY (profile, worker)
) STRICT, WITHOUT ROWID;

CREATE INDEX workers_worker ON workers (worker);
