-- Schema 2: the ledger. A row for each paid run, without what was asked; its job may be long gone. Money is billionths of a
-- US dollar. Jobs made before this schema have no row.
create table ledger (
  job      text collate "C" not null,
  run      bigint not null,              -- its number among the paid runs of the job, from 1
  owner    text collate "C" not null,
  provider text collate "C" not null,
  model    text collate "C",
  at       bigint not null,              -- when it was reserved
  day      bigint not null,              -- the UTC day of that, in days since 1970
  reserved bigint,                       -- what was set aside, where a typical cost is known
  amount   bigint,                       -- what it cost, where that is known
  kind     text collate "C" not null check (kind in ('reported', 'computed', 'estimate', 'unknown')),
  state    text collate "C" not null check (state in ('reserved', 'spent', 'maybe', 'released')),
  remote   text collate "C",             -- the provider's name of a run that another job may take up
  primary key (job, run),
  check ((kind = 'unknown') = (amount is null)),
  check ((state = 'spent') = (amount is not null))
) with (fillfactor = 80);

create index ledger_owner on ledger (owner, day);
create index ledger_day on ledger (day);
create index ledger_remote on ledger (remote) where remote is not null;
