-- Schema 12: lists of conversations, and sums of the ledger by day.

-- The turns of conversations in the order of their list, without all other jobs.
CREATE INDEX jobs_turns ON jobs (owner, seq DESC) WHERE conversation IS NOT NULL;
-- What did not succeed, which is little, by provider and state.
CREATE INDEX jobs_unsuccessful ON jobs (owner, provider, state, seq DESC) WHERE ended_at IS NOT NULL AND state <> 'succeeded';

-- The ledger's rows added up, but for those that were released: dollars and the billionths beside them.
CREATE TABLE ledger_days (
  owner     TEXT NOT NULL,
  day       INTEGER NOT NULL,
  provider  TEXT NOT NULL,
  has_model INTEGER NOT NULL,
  model     TEXT NOT NULL,               -- empty if none is known
  state     TEXT NOT NULL,
  runs      INTEGER NOT NULL,
  dollars   INTEGER NOT NULL,
  rest      INTEGER NOT NULL,
  PRIMARY KEY (owner, day, provider, has_model, model, state)
) STRICT, WITHOUT ROWID;

CREATE INDEX ledger_days_day ON ledger_days (day);

INSERT INTO ledger_days (owner, day, provider, has_model, model, state, runs, dollars, rest)
  SELECT owner, day, provider, model IS NOT NULL, coalesce(model, ''), state, count(*),
    sum(counted / 1000000000), sum(counted % 1000000000)
  FROM (SELECT *, CASE state WHEN 'spent' THEN amount ELSE coalesce(reserved, 0) END AS counted
        FROM ledger WHERE state <> 'released')
  GROUP BY 1, 2, 3, 4, 5, 6;

-- Triggers, because processes of the previous version write the ledger too. They replace rows of the ledger (INSERT OR REPLACE),
-- for which no trigger of a deletion fires: the row that is replaced goes before.
CREATE TRIGGER ledger_replace BEFORE INSERT ON ledger BEGIN
  UPDATE ledger_days SET runs = ledger_days.runs - 1, dollars = dollars - counted / 1000000000, rest = rest - counted % 1000000000
  FROM (SELECT *, CASE state WHEN 'spent' THEN amount ELSE coalesce(reserved, 0) END AS counted FROM ledger
        WHERE job = new.job AND run = new.run) AS old
  WHERE ledger_days.owner = old.owner AND ledger_days.day = old.day AND ledger_days.provider = old.provider
    AND ledger_days.has_model = (old.model IS NOT NULL) AND ledger_days.model = coalesce(old.model, '')
    AND ledger_days.state = old.state;
END;

CREATE TRIGGER ledger_come AFTER INSERT ON ledger WHEN new.state <> 'released' BEGIN
  INSERT INTO ledger_days VALUES (new.owner, new.day, new.provider, new.model IS NOT NULL, coalesce(new.model, ''), new.state, 1,
      CASE new.state WHEN 'spent' THEN new.amount ELSE coalesce(new.reserved, 0) END / 1000000000,
      CASE new.state WHEN 'spent' THEN new.amount ELSE coalesce(new.reserved, 0) END % 1000000000)
    ON CONFLICT DO UPDATE SET runs = runs + 1, dollars = dollars + excluded.dollars, rest = rest + excluded.rest;
END;

CREATE TRIGGER ledger_go AFTER DELETE ON ledger BEGIN
  UPDATE ledger_days SET runs = runs - 1,
    dollars = dollars - CASE old.state WHEN 'spent' THEN old.amount ELSE coalesce(old.reserved, 0) END / 1000000000,
    rest = rest - CASE old.state WHEN 'spent' THEN old.amount ELSE coalesce(old.reserved, 0) END % 1000000000
  WHERE owner = old.owner AND day = old.day AND provider = old.provider AND has_model = (old.model IS NOT NULL)
    AND model = coalesce(old.model, '') AND state = old.state;
  DELETE FROM ledger_days WHERE owner = old.owner AND day = old.day AND runs = 0;
END;

CREATE TRIGGER ledger_move AFTER UPDATE ON ledger BEGIN
  UPDATE ledger_days SET runs = runs - 1,
    dollars = dollars - CASE old.state WHEN 'spent' THEN old.amount ELSE coalesce(old.reserved, 0) END / 1000000000,
    rest = rest - CASE old.state WHEN 'spent' THEN old.amount ELSE coalesce(old.reserved, 0) END % 1000000000
  WHERE owner = old.owner AND day = old.day AND provider = old.provider AND has_model = (old.model IS NOT NULL)
    AND model = coalesce(old.model, '') AND state = old.state;
  INSERT INTO ledger_days SELECT new.owner, new.day, new.provider, new.model IS NOT NULL, coalesce(new.model, ''), new.state, 1,
      CASE new.state WHEN 'spent' THEN new.amount ELSE coalesce(new.reserved, 0) END / 1000000000,
      CASE new.state WHEN 'spent' THEN new.amount ELSE coalesce(new.reserved, 0) END % 1000000000
    WHERE new.state <> 'released'
    ON CONFLICT DO UPDATE SET runs = runs + 1, dollars = dollars + excluded.dollars, rest = rest + excluded.rest;
END;
