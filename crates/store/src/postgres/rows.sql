-- name: whole
select jobs.*, revs.rev, bodies.ask, bodies.output, bodies.text, partials.text as partial,
    keys.input_hash, keys.made_at, keys.holds, keys.span, keys.span_answered, keys.answered_at,
    job_terms.allowance, job_terms.notice, job_terms.subject, questions.questions
  from jobs join revs on revs.job = jobs.seq join bodies on bodies.job = jobs.seq
    left join keys on keys.job = jobs.seq
    left join job_terms on job_terms.job = jobs.seq
    left join questions on questions.job = jobs.seq
    left join partials on partials.job = jobs.seq and jobs.state = 'running'

-- name: light
select jobs.*, revs.rev, null::text as ask, null::text as output, null::bytea as text, null::text as partial,
    keys.input_hash, keys.made_at, keys.holds, keys.span, keys.span_answered, keys.answered_at,
    job_terms.allowance, job_terms.notice, job_terms.subject, questions.questions
  from jobs join revs on revs.job = jobs.seq left join keys on keys.job = jobs.seq
    left join job_terms on job_terms.job = jobs.seq
    left join questions on questions.job = jobs.seq

-- name: save_allowance
update job_terms set allowance = $2 where job = $1

-- name: fill
with owed as (insert into unindexed (job) select $1 where $2::text is not null)
  update bodies set output = $2, text = $3, raw = $4 where job = $1
