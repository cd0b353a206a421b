-- Schema 10: counts of ended jobs from indexes alone, and the operator's lists by provider and state.

drop index jobs_ended_state;
create index jobs_ended_state     on jobs (owner, state, seq desc) include (expires_at) where ended_at is not null;
drop index jobs_all_ended_state;
create index jobs_all_ended_state on jobs (state, seq desc) include (expires_at) where ended_at is not null;

-- What did not succeed, which is little, by provider and state, of all owners.
create index jobs_all_unsuccessful on jobs (provider, state, seq desc) where ended_at is not null and state <> 'succeeded';
