-- Schema 11: the index of titles (titles.rs), which is filled some time after the jobs have arrived.

-- The jobs of a segment whose titles contain a part.
create table title_parts (
  segment bigint not null,
  part    bigint not null,
  jobs    bytea not null,
  primary key (segment, part)
);

-- The segments whose parts are complete.
create table title_segments (
  segment bigint primary key
);
