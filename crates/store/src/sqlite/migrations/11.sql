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
