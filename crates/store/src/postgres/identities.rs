//! Identities of held research calls, which find the newest job of the same call. Only this file knows their columns.

use outlast_core::rules::{EarlierCall, IdentityRecord};
use outlast_core::{CallMode, Key, NewJob, OwnerId, StoreError, Timestamp, rules};
use tokio_postgres::Row;

use super::fault::Fault;
use super::rows::{self, Stored};
use super::text::escaped;
use super::tx::{Param, Tx};
use crate::columns::{Columns as _, identity_life};

/// `rules::IdentityRecord::is_of`: the newest job of the same call, preferring an unfinished one.
const NEWEST: &str =
    "select calls.job from call_identities as calls join jobs on jobs.seq = calls.job
     where calls.owner = $1 and calls.question = $2 and (calls.fresh or not $3::boolean)
       and case when jobs.ended_at is null then $4::text is null or calls.provider = $4
         else calls.provider = $5 and calls.model is not distinct from $6::text end
     order by jobs.ended_at is null desc, calls.job desc limit 1";

/// Selects identities for [`of_row`]. Processes of the previous version record answers only in `keys`. Append a condition.
pub(super) const SELECT: &str =
    "select call_identities.job, question, provider, model, fresh::int::bigint as fresh, call_identities.made_at,
       call_identities.span, call_identities.span_answered,
       coalesce(call_identities.answered_at, keys.answered_at) as answered_at
     from call_identities left join keys on keys.job = call_identities.job";

/// Records the identity of a new job. Takes the parameters of [`added`].
pub(super) const ADD: &str =
    "insert into call_identities (job, owner, question, provider, model, fresh, made_at, span, span_answered, answered_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// Records the first time at which a call was answered with the job's outcome.
pub(super) const RECORD_ANSWER: &str =
    "update call_identities set answered_at = coalesce(answered_at, $2) where job = $1";

/// Returns the job that the call's key names, or else the newest job of the same call. `named` is the job that the key's text
/// names.
pub(super) async fn earlier_call(
    tx: &mut Tx,
    new: &NewJob,
    key: &Key,
    owner: &str,
    named: Option<&Stored>,
) -> Result<Option<EarlierCall<i64>>, Fault> {
    let named = named.and_then(|Stored { seq, record, key }| {
        Some(EarlierCall { seq: *seq, job: record.job.clone(), key: (*key)? })
    });
    let Some(call) = key.deciding_identity() else { return Ok(named) };
    let named = named.filter(|_| key.looks_up_previous_form());
    let (question, is_fresh) = (call.question.to_vec(), call.mode == CallMode::Fresh);
    let named_provider = call.named_provider.as_deref().map(escaped);
    let provider = escaped(new.profile.provider());
    let model = call.model.as_deref().map(escaped);
    let select = format!("{SELECT} where call_identities.job in (({NEWEST}), $7)");
    let whole = format!("{} where jobs.seq = ({NEWEST})", rows::WHOLE);
    let named_seq = named.as_ref().map(|call| call.seq);
    let [identities, jobs] = tx
        .load([
            (
                &select,
                &[&owner, &question, &is_fresh, &named_provider, &provider, &model, &named_seq],
            ),
            (&whole, &[&owner, &question, &is_fresh, &named_provider, &provider, &model]),
        ])
        .await?;
    let mut identified = None;
    let mut previous = named;
    let newest = jobs.first().map(rows::stored).transpose()?;
    for row in &identities {
        let (seq, identity) = (row.number("job")?, of_row(row)?);
        previous = previous.filter(|call| call.seq != seq);
        if let Some(Stored { record, .. }) = newest.as_ref().filter(|newest| newest.seq == seq) {
            identified =
                Some(EarlierCall { seq, job: record.job.clone(), key: identity.key(call) });
        }
    }
    Ok(rules::newest_call(identified, previous, new))
}

/// Reads an identity from a row.
pub(super) fn of_row(row: &Row) -> Result<IdentityRecord, Fault> {
    let damaged = |seq: i64| StoreError::Corrupt {
        at: format!("the identity of the call of job number {seq}"),
    };
    let identity = row.identity()?;
    Ok(identity.ok_or(damaged(row.number("job")?))?)
}

/// The parameters of [`ADD`].
pub(super) fn added(owner: &OwnerId, record: &IdentityRecord, seq: i64) -> Vec<Param> {
    let (span, span_answered) = identity_life(record.life);
    vec![
        Box::new(seq),
        Box::new(escaped(owner.as_str())),
        Box::new(record.question.to_vec()),
        Box::new(escaped(&record.provider)),
        Box::new(record.model.as_deref().map(escaped)),
        Box::new(record.mode == CallMode::Fresh),
        Box::new(record.made_at.as_millis()),
        Box::new(span),
        Box::new(span_answered),
        Box::new(record.answered_at.map(Timestamp::as_millis)),
    ]
}
