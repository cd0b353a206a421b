-- name: newest
select calls.job from call_identities as calls join jobs on jobs.seq = calls.job
  where calls.owner = $1 and calls.question = $2 and (calls.fresh or not $3::boolean)
    and case when jobs.ended_at is null then $4::text is null or calls.provider = $4
      else calls.provider = $5 and calls.model is not distinct from $6::text end
  order by jobs.ended_at is null desc, calls.job desc limit 1

-- name: select
select call_identities.job, question, provider, model, fresh::int::bigint as fresh, call_identities.made_at,
    call_identities.span, call_identities.span_answered,
    coalesce(call_identities.answered_at, keys.answered_at) as answered_at
  from call_identities left join keys on keys.job = call_identities.job

-- name: record_answer
update call_identities set answered_at = coalesce(answered_at, $2) where job = $1
