-- Schema 5: the ledger. A row for each paid run, without what was asked; its job may be long gone. Money is billionths of a
-- US dollar. Jobs made before this schema have no row.
CREATE TABLE ledger (
  job      TEXT NOT NULL,
  run      INTEGER NOT NULL,             -- its number among the paid runs of the job, from 1
  owner    TEXT NOT NULL,
  provider TEXT NOT NULL,
  model    TEXT,
  at       INTEGER NOT NULL,             -- when it was reserved
  day      INTEGER NOT NULL,             -- the UTC day of that, in days since 1970
  reserved INTEGER,                      -- what was set aside, where a typical cost is known
  amount   INTEGER,                      -- what it cost, where that is known
  kind     TEXT NOT NULL CHECK (kind IN ('reported', 'computed', 'estimate', 'unknown')),
  state    TEXT NOT NULL CHECK (state IN ('reserved', 'spent', 'maybe', 'released')),
  remote   TEXT,                         -- the provider's name of a run that another job may take up
  PRIMARY KEY (job, run),
  CHECK ((kind = 'unknown') = (amount IS NULL)),
  CHECK ((state = 'spent') = (amount IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX ledger_owner ON ledger (owner, day);
CREATE INDEX ledger_day ON ledger (day);
CREATE INDEX ledger_remote ON ledger (remote) WHERE remote IS NOT NULL;
