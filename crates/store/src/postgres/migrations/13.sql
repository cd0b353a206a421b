-- Schema 13: questions of jobs to their owners.

-- The questions of a job (`Questions`, JSON), if it has asked any. A process of the previous version may end a job without
-- knowing this table, so an open question counts only while its job has not ended.
create table questions (
  job       bigint primary key references jobs (seq) on delete cascade,
  is_open   bigint not null,             -- 1 while the present question has no answer
  questions text not null
) with (fillfactor = 80);
