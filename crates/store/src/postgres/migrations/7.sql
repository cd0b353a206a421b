-- Schema 7: words are put some time after their jobs (postgres/words.rs).

-- A row for each job that was asked or has succeeded since its words were put. Nothing bounds a job to one row, so that no writer
-- waits for another.
create table unindexed (
  nr  bigint generated always as identity primary key,
  job bigint not null
);
