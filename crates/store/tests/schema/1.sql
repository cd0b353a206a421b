-- Schema 1. Times are milliseconds since 1970, durations milliseconds, words those of core.

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The last change number given out: one per group commit, shared by its rows.
INSERT INTO meta VALUES ('rev', 0);

CREATE TABLE jobs (
  seq             INTEGER PRIMARY KEY,   -- number of arrival
  id              TEXT NOT NULL UNIQUE,
  owner           TEXT NOT NULL,
  conversation    TEXT,
  turn            INTEGER NOT NULL,
  profile         TEXT NOT NULL,
  workflow        TEXT NOT NULL,
  title           TEXT NOT NULL,
  title_folded    TEXT NOT NULL,         -- lower case, for search: SQLite itself folds only ASCII
  priority        INTEGER NOT NULL,
  visibility      TEXT NOT NULL,
  max_failures    INTEGER NOT NULL,
  attempt_timeout INTEGER NOT NULL,
  life            INTEGER,
  keep            INTEGER,

  state           TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
  run_at          INTEGER,
  since           INTEGER,
  ended_at        INTEGER,
  remote          TEXT,                  -- what is known of a cancelled job's remote run
  fence           INTEGER NOT NULL,
  worker          TEXT,
  lease_until     INTEGER,
  checkpoint      TEXT NOT NULL,         -- JSON
  failures        TEXT NOT NULL,         -- JSON, oldest first
  percent         INTEGER,
  message         TEXT,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  expires_at      INTEGER,               -- when readers stop seeing it
  rev             INTEGER NOT NULL,

  CHECK ((state = 'queued') = (run_at IS NOT NULL)),
  CHECK ((state = 'running') = (since IS NOT NULL)),
  CHECK ((state = 'running') = (worker IS NOT NULL)),
  CHECK ((state = 'running') = (lease_until IS NOT NULL)),
  CHECK ((state IN ('succeeded', 'failed', 'cancelled')) = (ended_at IS NOT NULL)),
  CHECK ((state = 'cancelled') = (remote IS NOT NULL))
) STRICT;

CREATE INDEX jobs_claim        ON jobs (profile, priority DESC, seq) WHERE state = 'queued';
CREATE INDEX jobs_due          ON jobs (run_at) WHERE state = 'queued';
CREATE INDEX jobs_lease        ON jobs (lease_until) WHERE state = 'running';
CREATE INDEX jobs_rev          ON jobs (rev);
CREATE INDEX jobs_owner        ON jobs (owner, seq DESC);
CREATE INDEX jobs_unfinished   ON jobs (owner, state) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_conversation ON jobs (owner, conversation, turn) WHERE conversation IS NOT NULL;
CREATE INDEX jobs_owed         ON jobs (profile, seq) WHERE remote = 'owed';

-- At most one unfinished job for each conversation, whatever the code does.
CREATE UNIQUE INDEX jobs_busy ON jobs (owner, conversation)
  WHERE conversation IS NOT NULL AND state IN ('queued', 'running');

-- What is long, so that lists and renewals never drag it along.
CREATE TABLE bodies (
  job    INTEGER PRIMARY KEY REFERENCES jobs (seq) ON DELETE CASCADE,
  ask    TEXT NOT NULL,                  -- JSON
  output TEXT,                           -- JSON, of a job that succeeded
  raw    BLOB                            -- the provider's last word as it came
) STRICT;

-- "until" is the end of the window; a key holds longer while its job is unfinished.
CREATE TABLE keys (
  owner      TEXT NOT NULL,
  text       TEXT NOT NULL,
  job        INTEGER NOT NULL REFERENCES jobs (seq) ON DELETE CASCADE,
  input_hash BLOB NOT NULL,
  until      INTEGER NOT NULL,
  PRIMARY KEY (owner, text)
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_job ON keys (job);
