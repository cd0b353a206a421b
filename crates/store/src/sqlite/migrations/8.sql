-- Schema 8: what was made once and is needed again, such as the ids of a vendor's account.

CREATE TABLE kept (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
