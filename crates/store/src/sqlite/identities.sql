-- name: select
SELECT job, question, provider, model, fresh, made_at, span, span_answered,
    coalesce(answered_at, (SELECT answered_at FROM keys WHERE keys.job = call_identities.job)) AS answered_at
  FROM call_identities

-- name: newest
SELECT calls.job FROM call_identities AS calls CROSS JOIN jobs ON jobs.seq = calls.job
  WHERE calls.owner = :owner AND calls.question = :question AND calls.fresh >= :fresh
    AND CASE WHEN jobs.ended_at IS NULL THEN :named IS NULL OR calls.provider = :named
      ELSE calls.provider = :provider AND calls.model IS :model END
  ORDER BY jobs.ended_at IS NULL DESC, calls.job DESC LIMIT 1

-- name: record_answer
UPDATE call_identities SET answered_at = coalesce(answered_at, ?2) WHERE job = ?1
