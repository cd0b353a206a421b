-- Schema 4: owners share the queue's slots, and each has so much room; the report of a held research call is told again
-- after a call was answered with it.

-- How much of its owner's room a job takes: `Record::bytes`.
ALTER TABLE jobs ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;

UPDATE jobs SET bytes = coalesce((
  SELECT octet_length(ask) + coalesce(octet_length(output), 0) + coalesce(octet_length(text), 0)
    + coalesce(octet_length(raw), 0)
  FROM bodies WHERE bodies.job = jobs.seq), 0);

-- Every owner who has ever had a job, and their turn. "queued" and "running" count what is in the queue or came
-- from it: visibility 'promised'. The triggers below keep the counts, so that a claim and an insert count nothing.
CREATE TABLE owners (
  arrived INTEGER PRIMARY KEY,           -- the order in which owners came
  owner   TEXT NOT NULL UNIQUE,
  queued  INTEGER NOT NULL DEFAULT 0,
  running INTEGER NOT NULL DEFAULT 0,
  served  INTEGER NOT NULL DEFAULT 0,    -- the number of the claim that served them last
  bytes   INTEGER NOT NULL DEFAULT 0     -- of all their jobs
) STRICT;

INSERT INTO owners (owner, queued, running, bytes)
  SELECT owner, count(*) FILTER (WHERE state = 'queued' AND visibility = 'promised'),
    count(*) FILTER (WHERE state = 'running' AND visibility = 'promised'), sum(bytes)
  FROM jobs GROUP BY owner ORDER BY min(seq);

-- `rules::Turn`, for those who wait.
CREATE INDEX owners_turn ON owners (running, served, arrived) WHERE queued > 0;
CREATE INDEX owners_served ON owners (served);

DROP INDEX jobs_claim;
CREATE INDEX jobs_claim ON jobs (profile, owner, priority DESC, seq) WHERE state = 'queued';

CREATE TRIGGER jobs_come AFTER INSERT ON jobs BEGIN
  INSERT INTO owners (owner) VALUES (new.owner) ON CONFLICT DO NOTHING;
  UPDATE owners SET
    queued = queued + (new.state = 'queued' AND new.visibility = 'promised'),
    running = running + (new.state = 'running' AND new.visibility = 'promised'),
    bytes = bytes + new.bytes
  WHERE owner = new.owner;
END;

CREATE TRIGGER jobs_move AFTER UPDATE OF state ON jobs
WHEN old.state <> new.state AND new.visibility = 'promised' BEGIN
  UPDATE owners SET
    queued = queued + (new.state = 'queued') - (old.state = 'queued'),
    running = running + (new.state = 'running') - (old.state = 'running'),
    served = CASE new.state WHEN 'running' THEN (SELECT max(served) FROM owners) + 1 ELSE served END
  WHERE owner = new.owner;
END;

CREATE TRIGGER jobs_grow AFTER UPDATE OF bytes ON jobs
WHEN old.bytes <> new.bytes BEGIN
  UPDATE owners SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
END;

CREATE TRIGGER jobs_go AFTER DELETE ON jobs BEGIN
  UPDATE owners SET
    queued = queued - (old.state = 'queued' AND old.visibility = 'promised'),
    running = running - (old.state = 'running' AND old.visibility = 'promised'),
    bytes = bytes - old.bytes
  WHERE owner = old.owner;
END;

-- When a call was first answered with the outcome of the key's job.
ALTER TABLE keys ADD COLUMN answered_at INTEGER;

-- 'until_answered': from the job's end on, once a call was answered; none where an answer ends it. Keys made before this
-- schema have none.
ALTER TABLE keys ADD COLUMN span_answered INTEGER;
