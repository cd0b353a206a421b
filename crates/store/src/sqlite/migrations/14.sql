-- Schema 14: the index of titles (titles.rs), which is filled when the writer rests.

-- The jobs of a segment whose titles contain a part.
CREATE TABLE title_parts (
  segment INTEGER NOT NULL,
  part    INTEGER NOT NULL,
  jobs    BLOB NOT NULL,
  PRIMARY KEY (segment, part)
) STRICT, WITHOUT ROWID;

-- The segments whose parts are complete.
CREATE TABLE title_segments (
  segment INTEGER PRIMARY KEY
) STRICT;

-- The numbers of the newest jobs are given out again once those jobs are removed.
CREATE TRIGGER titles_go AFTER DELETE ON jobs WHEN old.seq > coalesce((SELECT max(seq) FROM jobs), 0) BEGIN
  DELETE FROM title_segments WHERE segment >= coalesce((SELECT max(seq) FROM jobs), 0) + 1 >> 12;
END;
