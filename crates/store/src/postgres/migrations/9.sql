-- Schema 9: lists of conversations, and sums of the ledger by day.

-- The turns of conversations in the order of their list, without all other jobs.
create index jobs_turns on jobs (owner, seq desc) where conversation is not null;
-- What did not succeed, which is little, by provider and state.
create index jobs_unsuccessful on jobs (owner, provider, state, seq desc) where ended_at is not null and state <> 'succeeded';

-- The ledger's rows added up, but for those that were released: dollars and the billionths beside them.
create table ledger_days (
  owner     text collate "C" not null,
  day       bigint not null,
  provider  text collate "C" not null,
  has_model boolean not null,
  model     text collate "C" not null,   -- empty if none is known
  state     text collate "C" not null,
  runs      bigint not null,
  dollars   bigint not null,
  rest      bigint not null,
  primary key (owner, day, provider, has_model, model, state)
) with (fillfactor = 70);
create index ledger_days_day on ledger_days (day);

-- What changed in the ledger and is not in ledger_days yet: sums are made of both. A writer only adds rows, so that it waits for
-- no other writer of the same owner.
create table ledger_changes (
  owner     text collate "C" not null,
  day       bigint not null,
  provider  text collate "C" not null,
  has_model boolean not null,
  model     text collate "C" not null,
  state     text collate "C" not null,
  runs      bigint not null,
  dollars   bigint not null,
  rest      bigint not null
);

-- Triggers, because processes of the previous version write the ledger too.
create function note_ledger_change() returns trigger language plpgsql as $$
declare
  counted bigint;
begin
  if tg_op <> 'INSERT' and old.state <> 'released' then
    counted := case old.state when 'spent' then old.amount else coalesce(old.reserved, 0) end;
    insert into ledger_changes values (old.owner, old.day, old.provider, old.model is not null, coalesce(old.model, ''), old.state,
      -1, -(counted / 1000000000), -(counted % 1000000000));
  end if;
  if tg_op <> 'DELETE' and new.state <> 'released' then
    counted := case new.state when 'spent' then new.amount else coalesce(new.reserved, 0) end;
    insert into ledger_changes values (new.owner, new.day, new.provider, new.model is not null, coalesce(new.model, ''), new.state,
      1, counted / 1000000000, counted % 1000000000);
  end if;
  return null;
end $$;
create trigger ledger_change after insert or delete or update of owner, day, provider, model, reserved, amount, state on ledger
  for each row execute function note_ledger_change();

-- The trigger's lock keeps writers out until this is committed.
insert into ledger_days (owner, day, provider, has_model, model, state, runs, dollars, rest)
  select owner, day, provider, model is not null, coalesce(model, ''), state, count(*),
    sum(counted / 1000000000), sum(counted % 1000000000)
  from (select *, case state when 'spent' then amount else coalesce(reserved, 0) end as counted
        from ledger where state <> 'released') as counted
  group by 1, 2, 3, 4, 5, 6;
