-- Schema 4: the report of a held research call is told again after a call was answered with it.

-- When a call was first answered with the outcome of the key's job.
ALTER TABLE keys ADD COLUMN answered_at INTEGER;

-- 'until_answered': from the job's end on, once a call was answered; none where an answer ends it. Keys made before this
-- schema have none.
ALTER TABLE keys ADD COLUMN span_answered INTEGER;
