-- Schema 13: the operator's lists by provider and state.

-- What did not succeed, which is little, by provider and state, of all owners.
CREATE INDEX jobs_all_unsuccessful ON jobs (provider, state, seq DESC) WHERE ended_at IS NOT NULL AND state <> 'succeeded';
