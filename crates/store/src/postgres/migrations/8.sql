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
