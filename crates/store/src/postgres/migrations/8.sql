-- Schema 8: the cap of a run, sweeps of the ledger, identities of calls, and wanted notices.

-- The identity of a job's held research call (`rules::IdentityRecord`), apart from `keys`: a job has at most one row
-- there, and processes of the previous version, which know that table alone, go on with it. They remove jobs without
-- knowing this table, hence the foreign key.
create table call_identities (
  job           bigint primary key references jobs (seq) on delete cascade,
  owner         text collate "C" not null,
  question      bytea not null,
  provider      text collate "C" not null,
  model         text collate "C",
  fresh         boolean not null,
  made_at       bigint not null,
  span          bigint not null,         -- from the job's end on, while no call was answered with it
  span_answered bigint not null,         -- from the job's end on, once one was
  answered_at   bigint
);
create index call_identities_question on call_identities (owner, question);
-- What an insert decided beside the job: what its paid runs may cost (RunAllowance, JSON), and 1 if a notice of its end is
-- wanted. Not columns of jobs: a running process of an older version has prepared statements over all of those, which
-- PostgreSQL refuses once a column is added.
create table job_terms (
  job       bigint primary key references jobs (seq) on delete cascade,
  allowance text,
  notice    bigint not null default 0
);

-- The UTC days on which old rows of the ledger were looked for, by the server's clock.
create table ledger_sweeps (
  day bigint primary key
);
-- Paid runs: the provider's name of each, so that the runs of one job can be told apart.
alter table ledger add column run_id text collate "C";
