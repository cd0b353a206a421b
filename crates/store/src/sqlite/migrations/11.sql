-- Schema 11: the cap of a run, sweeps of the ledger, identities of calls, and wanted notices.

-- The identity of a job's held research call (`rules::IdentityRecord`), apart from `keys`: a job has at most one row
-- there, and processes of the previous version, which know that table alone, go on with it.
CREATE TABLE call_identities (
  job           INTEGER PRIMARY KEY REFERENCES jobs (seq) ON DELETE CASCADE,
  owner         TEXT NOT NULL,
  question      BLOB NOT NULL,
  provider      TEXT NOT NULL,
  model         TEXT,
  fresh         INTEGER NOT NULL CHECK (fresh IN (0, 1)),
  made_at       INTEGER NOT NULL,
  span          INTEGER NOT NULL,         -- from the job's end on, while no call was answered with it
  span_answered INTEGER NOT NULL,         -- from the job's end on, once one was
  answered_at   INTEGER
) STRICT;

CREATE INDEX call_identities_question ON call_identities (owner, question);
-- What the paid runs of a job may cost (RunAllowance, JSON), decided by its insert; NULL for a free job and in older rows.
ALTER TABLE jobs ADD COLUMN allowance TEXT;
-- 1 if the process that inserted the job wants a notice of its end, whichever process ends it.
ALTER TABLE jobs ADD COLUMN notice INTEGER NOT NULL DEFAULT 0;

-- The UTC days on which old rows of the ledger were looked for, by the store's clock.
CREATE TABLE ledger_sweeps (
  day INTEGER PRIMARY KEY
) STRICT;
-- Paid runs: the provider's name of each, so that the runs of one job can be told apart.
ALTER TABLE ledger ADD COLUMN run_id TEXT;
