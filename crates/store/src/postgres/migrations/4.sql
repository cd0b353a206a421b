-- Schema 4: lists by state, provider and word.

-- Profile::provider
alter table jobs add column provider text collate "C" not null
  generated always as (split_part(replace(profile, '/', ' '), ' ', 1)) stored;

create index jobs_provider     on jobs (owner, provider, seq desc);
create index jobs_all_provider on jobs (provider, seq desc);

-- Written once for each job, with its end. What has not ended is little, and found by jobs_unfinished.
create index jobs_ended_state     on jobs (owner, state, seq desc) where ended_at is not null;
create index jobs_all_ended_state on jobs (state, seq desc) where ended_at is not null;

-- The words of questions and reports (core/src/search.rs), one row for each job.
create table search (
  job   bigint primary key references jobs (seq) on delete cascade,
  words tsvector not null
);
create index search_words on search using gin (words);

-- What was asked and answered before this schema, nearly as the program would part it.
insert into search (job, words)
  select seq, to_tsvector('simple', title_folded || ' ' || replace(left(ask || ' ' || coalesce(output, ''), 200000), '\n', ' '))
  from jobs join bodies on bodies.job = jobs.seq;
