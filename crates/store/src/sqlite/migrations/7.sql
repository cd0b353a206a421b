-- Schema 7: lists by state, provider and word.

-- `Profile::provider`.
ALTER TABLE jobs ADD COLUMN provider TEXT NOT NULL
  GENERATED ALWAYS AS (substr(profile, 1, instr(replace(profile, '/', ' ') || ' ', ' ') - 1)) VIRTUAL;

CREATE INDEX jobs_provider     ON jobs (owner, provider, seq DESC);
CREATE INDEX jobs_all_provider ON jobs (provider, seq DESC);

-- Written once for each job, with its end. What has not ended is little, and found by jobs_unfinished.
CREATE INDEX jobs_ended_state     ON jobs (owner, state, seq DESC, expires_at) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_all_ended_state ON jobs (state, seq DESC, expires_at) WHERE ended_at IS NOT NULL;

-- The words of questions and reports (`core/src/search.rs`), one row for each job. They arrive as words in lower case, so
-- the tokenizer has only to part them at spaces.
CREATE VIRTUAL TABLE search USING fts5 (words, content = '', contentless_delete = 1, detail = 'none', tokenize = 'ascii');

CREATE TRIGGER search_go AFTER DELETE ON jobs BEGIN
  DELETE FROM search WHERE rowid = old.seq;
END;

-- What was asked and answered before this schema, nearly as the program would part it.
INSERT INTO search (rowid, words)
  SELECT seq, lower(title_folded || ' ' || ask || ' ' ||
    coalesce(json_extract(output, '$.body.text'), '') || ' ' || coalesce(CAST(text AS TEXT), ''))
  FROM jobs JOIN bodies ON bodies.job = jobs.seq;
