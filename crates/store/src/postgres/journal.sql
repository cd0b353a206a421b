-- name: step
select steps.*, step_outputs.output from jobs join steps on steps.job = jobs.seq
    left join step_outputs on step_outputs.job = steps.job and step_outputs.key = steps.key
  where jobs.id = $1 and steps.key = $2

-- name: usage
select (select count(*) from steps where steps.job = jobs.seq) as steps,
  (owners.bytes + coalesce((select sum(room.bytes) from room where room.owner = owners.owner), 0))::bigint as owner_bytes
  from jobs join owners using (owner) where jobs.id = $1

-- name: add_output
insert into step_outputs (job, key, output) values ($1, $2, $3)

-- name: save_bytes
update jobs set bytes = $2 where seq = $1

-- name: has_read
select 1 from jobs join step_pages on step_pages.job = jobs.seq where jobs.id = $1 and step_pages.digest = $2

-- name: add_reader
insert into step_pages (job, owner, digest) values ($1, $2, $3)

-- name: steps
select steps.* from steps join jobs on jobs.seq = steps.job
  where jobs.id = $1 and ($2::text is null or jobs.owner = $2) order by steps.started_at, steps.key

-- name: step_outputs
select steps.key, steps.kind, step_outputs.output from jobs join steps on steps.job = jobs.seq
    join step_outputs on step_outputs.job = steps.job and step_outputs.key = steps.key
  where jobs.id = $1 and ($2::text is null or jobs.owner = $2) and steps.kind = any($3::text[])
  order by steps.started_at, steps.key

-- name: page
select * from pages where owner = $1 and digest = $2

-- name: bytes
select ((select coalesce(sum(octet_length(key) + octet_length(kind) + $2::bigint), 0) from steps where job = jobs.seq)
  + (select coalesce(sum(octet_length(output)), 0) from step_outputs where job = jobs.seq)
  + (select coalesce(sum(octet_length(text) + octet_length(url) + octet_length(final_url) + $2::bigint), 0)
     from step_pages join pages using (owner, digest) where job = jobs.seq))::bigint as bytes
  from jobs where id = $1

-- name: copy_steps
insert into steps (job, key, kind, input_digest, state, fence, bound_nano, spent_nano, tokens_in, tokens_out, resent,
    started_at, ended_at)
  select $2, key, kind, input_digest, state, case when $3 and state = 'sending' then 0 else fence end, bound_nano,
    spent_nano, tokens_in, tokens_out, resent, started_at, ended_at from steps where job = $1

-- name: move_outputs
update step_outputs set job = $2 where job = $1

-- name: remove_steps
delete from steps where job = $1

-- name: remove_pages
delete from step_pages where job = $1

-- name: ended_before
select id from jobs where provider = $1 and ended_at < $2
    and exists (select from steps where steps.job = jobs.seq) order by seq

-- name: move_pages
update step_pages set job = $2 where job = $1

-- name: steps_of_jobs
select steps.*, step_outputs.output from steps
    left join step_outputs on step_outputs.job = steps.job and step_outputs.key = steps.key
  where steps.job > $1 and steps.job <= $2 order by steps.job, steps.key

-- name: pages_of_jobs
select step_pages.job, pages.* from step_pages join pages using (owner, digest)
  where step_pages.job > $1 and step_pages.job <= $2 order by step_pages.job, digest

-- name: newest_about
select seq from jobs join job_terms on job_terms.job = jobs.seq
  where job_terms.subject = $1 and ($2::text is null or owner = $2) and (expires_at is null or expires_at > $3)
    and (cardinality($4::text[]) = 0 or state = any($4::text[]))
  order by seq desc limit 1
