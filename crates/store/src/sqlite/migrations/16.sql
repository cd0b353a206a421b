-- Schema 16: jobs about other jobs, and the journals of runs.

-- The id of the job that this one is about, such as the report that it checks.
ALTER TABLE jobs ADD COLUMN subject TEXT;
CREATE INDEX jobs_subject ON jobs (subject, seq DESC) WHERE subject IS NOT NULL;

-- The steps of a run. A step is recorded before its request is sent, and again with the answer.
CREATE TABLE steps (
  job          INTEGER NOT NULL REFERENCES jobs (seq) ON DELETE CASCADE,
  key          TEXT NOT NULL,            -- the same in every attempt
  kind         TEXT NOT NULL,
  input_digest BLOB NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('sending', 'done', 'failed')),
  fence        INTEGER NOT NULL,         -- the claim under which it was last sent
  bound_nano   INTEGER NOT NULL,         -- the maximum cost of sending it once
  spent_nano   INTEGER NOT NULL,
  tokens_in    INTEGER NOT NULL,
  tokens_out   INTEGER NOT NULL,
  resent       INTEGER NOT NULL,
  started_at   INTEGER NOT NULL,
  ended_at     INTEGER,
  PRIMARY KEY (job, key),
  CHECK ((state = 'sending') = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;

-- Apart, so that lists of steps never read them.
CREATE TABLE step_outputs (
  job    INTEGER NOT NULL,
  key    TEXT NOT NULL,
  output TEXT NOT NULL,                  -- of a failed step: the reason
  PRIMARY KEY (job, key),
  FOREIGN KEY (job, key) REFERENCES steps (job, key) ON DELETE CASCADE
) STRICT;

-- The pages that runs have read; never shared between owners.
CREATE TABLE pages (
  owner      TEXT NOT NULL,
  digest     BLOB NOT NULL,              -- of the address and the text
  url        TEXT NOT NULL,
  final_url  TEXT NOT NULL,
  status     INTEGER NOT NULL,
  media_type TEXT,
  fetched_at INTEGER NOT NULL,
  truncated  INTEGER NOT NULL,
  text       TEXT NOT NULL,
  PRIMARY KEY (owner, digest)
) STRICT;

CREATE TABLE step_pages (
  job    INTEGER NOT NULL REFERENCES jobs (seq) ON DELETE CASCADE,
  owner  TEXT NOT NULL,
  digest BLOB NOT NULL,
  PRIMARY KEY (job, owner, digest),
  FOREIGN KEY (owner, digest) REFERENCES pages (owner, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX step_pages_page ON step_pages (owner, digest);

-- The last job that has read a page takes it along.
CREATE TRIGGER step_pages_go AFTER DELETE ON step_pages BEGIN
  DELETE FROM pages WHERE owner = old.owner AND digest = old.digest
    AND NOT EXISTS (SELECT 1 FROM step_pages WHERE owner = old.owner AND digest = old.digest);
END;
