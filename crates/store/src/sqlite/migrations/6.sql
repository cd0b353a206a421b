-- Schema 6: what is told when a job has ended, and the text of a report that is being written.

-- One row for each end that is still to be told (`rules::notice`). Not bound to the job, which may be removed first.
CREATE TABLE notices (
  seq    INTEGER PRIMARY KEY,
  job    TEXT NOT NULL UNIQUE,
  body   TEXT NOT NULL,                  -- JSON, as it is delivered
  due_at INTEGER NOT NULL,               -- of a claimed one: when the claim ends
  tries  INTEGER NOT NULL DEFAULT 0      -- how often it was claimed
) STRICT;

CREATE INDEX notices_due ON notices (due_at, seq);

-- The text so far of jobs that are running: it ends with the try, whatever ends that.
CREATE TABLE partials (
  job  INTEGER PRIMARY KEY REFERENCES jobs (seq) ON DELETE CASCADE,
  text TEXT NOT NULL
) STRICT;

CREATE TRIGGER partials_end AFTER UPDATE OF state ON jobs
WHEN old.state = 'running' AND new.state <> 'running' BEGIN
  DELETE FROM partials WHERE job = new.seq;
END;
