-- Schema 3: what is told when a job has ended, and the text of a report that is being written.

-- One row for each end that is still to be told (rules::notice). Not bound to the job, which may be removed first.
create table notices (
  seq    bigint generated always as identity primary key,
  job    text collate "C" not null unique,
  body   text not null,                  -- JSON, as it is delivered
  due_at bigint not null,                -- of a claimed one: when the claim ends
  tries  bigint not null default 0       -- how often it was claimed
);
create index notices_due on notices (due_at, seq);

-- The text so far of jobs that are running: the statement that saves a job in any other state removes it.
create table partials (
  job  bigint primary key,
  text text not null
);
