-- Schema 3: a job without an end is unfinished. Asking so needs no list of states, for which SQLite builds a table
-- each time; and a conversation is found by its id alone, as operators ask for it.

DROP INDEX jobs_unfinished;
CREATE INDEX jobs_unfinished ON jobs (owner) WHERE ended_at IS NULL;

DROP INDEX jobs_conversation;
CREATE INDEX jobs_conversation ON jobs (conversation, owner, turn) WHERE conversation IS NOT NULL;

-- At most one unfinished job for each conversation, whatever the code does.
DROP INDEX jobs_busy;
CREATE UNIQUE INDEX jobs_busy ON jobs (owner, conversation) WHERE conversation IS NOT NULL AND ended_at IS NULL;

-- The text of a long report as it is; the one in its output is empty.
ALTER TABLE bodies ADD COLUMN text BLOB;
