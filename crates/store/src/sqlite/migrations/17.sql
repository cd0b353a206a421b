-- Schema 17: questions of jobs to their owners.

-- The questions of a job (`Questions`, JSON), if it has asked any. A process of the previous version may end a job without
-- knowing this table, so an open question counts only while its job has not ended.
CREATE TABLE questions (
  job       INTEGER PRIMARY KEY REFERENCES jobs (seq) ON DELETE CASCADE,
  is_open   INTEGER NOT NULL,            -- 1 while the present question has no answer
  questions TEXT NOT NULL
) STRICT;
