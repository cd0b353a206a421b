-- Schema 10: words are put when the writer rests or a search comes, many jobs at a time, and not with each insert and each end.

CREATE TABLE unindexed (job INTEGER PRIMARY KEY);

DROP TRIGGER search_go;
CREATE TRIGGER search_go AFTER DELETE ON jobs BEGIN
  DELETE FROM search WHERE rowid = old.seq;
  DELETE FROM unindexed WHERE job = old.seq;
END;
