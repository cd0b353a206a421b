-- Schema 12: jobs about other jobs, and the journals of runs.

-- The id of the job that this one is about, such as the report that it checks.
alter table job_terms add column subject text collate "C";
create index job_terms_subject on job_terms (subject) where subject is not null;

-- The steps of a run. A step is recorded before its request is sent, and again with the answer. Foreign keys, because
-- processes of the previous version remove jobs without knowing these tables.
create table steps (
  job          bigint not null references jobs (seq) on delete cascade,
  key          text collate "C" not null,   -- the same in every attempt
  kind         text collate "C" not null,
  input_digest bytea not null,
  state        text collate "C" not null check (state in ('sending', 'done', 'failed')),
  fence        bigint not null,             -- the claim under which it was last sent
  bound_nano   bigint not null,             -- the maximum cost of sending it once
  spent_nano   bigint not null,
  tokens_in    bigint not null,
  tokens_out   bigint not null,
  resent       bigint not null,
  started_at   bigint not null,
  ended_at     bigint,
  primary key (job, key),
  check ((state = 'sending') = (ended_at is null))
) with (fillfactor = 80);

-- Apart, so that lists of steps never read them.
create table step_outputs (
  job    bigint not null,
  key    text collate "C" not null,
  output text not null,                     -- of a failed step: the reason
  primary key (job, key),
  foreign key (job, key) references steps (job, key) on delete cascade
);

-- The pages that runs have read; never shared between owners.
create table pages (
  owner      text collate "C" not null,
  digest     bytea not null,                -- of the address and the text
  url        text not null,
  final_url  text not null,
  status     bigint not null,
  media_type text,
  fetched_at bigint not null,
  truncated  bigint not null,
  text       text not null,
  primary key (owner, digest)
);
create table step_pages (
  job    bigint not null references jobs (seq) on delete cascade,
  owner  text collate "C" not null,
  digest bytea not null,
  primary key (job, owner, digest),
  foreign key (owner, digest) references pages (owner, digest)
);
create index step_pages_page on step_pages (owner, digest);

-- The last job that has read a page takes it along. The page is locked first: of two jobs that are removed at once, the second
-- then sees that the first is gone, and a job that is about to read the page has either done so or adds it again.
create function remove_unread_page() returns trigger language plpgsql as $$
begin
  perform from pages where owner = old.owner and digest = old.digest for update;
  delete from pages where owner = old.owner and digest = old.digest
    and not exists (select from step_pages where owner = old.owner and digest = old.digest);
  return null;
end $$;
create trigger step_pages_go after delete on step_pages for each row execute function remove_unread_page();
