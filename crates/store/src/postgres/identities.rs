//! Identities of held research calls, which find the newest job of the same call. Only this file knows their columns.

use std::sync::LazyLock;

use outlast_core::rules::{EarlierCall, IdentityRecord};
use outlast_core::{CallMode, Key, NewJob, StoreError, rules};
use tokio_postgres::Row;

use super::fault::Fault;
use super::rows::{self, StoredRow};
use super::text::escape;
use super::tx::Tx;
use crate::columns::Columns as _;
use crate::tables::{CALL_IDENTITIES, insert, names};

/// `rules::IdentityRecord::is_of`: the newest job of the same call, preferring an unfinished one.
const NEWEST: &str = sql!(postgres::identities::newest);

/// Selects identities for [`of_row`]. Processes of the previous version record answers only in `keys`. Append a condition.
pub(super) const SELECT: &str = sql!(postgres::identities::select);

/// Records the identity of a new job. Takes the values of [`crate::tables::identity`].
pub(super) static ADD: LazyLock<String> =
    LazyLock::new(|| insert("insert into call_identities", &names(CALL_IDENTITIES)));

/// Records the first time at which a call was answered with the job's outcome.
pub(super) const RECORD_ANSWER: &str = sql!(postgres::identities::record_answer);

/// Returns the job that the call's key names, or else the newest job of the same call. `named` is the job that the key's text
/// names.
pub(super) async fn earlier_call(
    tx: &mut Tx,
    new: &NewJob,
    key: &Key,
    owner: &str,
    named: Option<&StoredRow>,
) -> Result<Option<EarlierCall<i64>>, Fault> {
    let named = named.and_then(|StoredRow { seq, record, key }| {
        Some(EarlierCall { seq: *seq, job: record.job.clone(), key: (*key)? })
    });
    let Some(call) = key.deciding_identity() else { return Ok(named) };
    let named = named.filter(|_| key.looks_up_previous_form());
    let (question, is_fresh) = (call.question.to_vec(), call.mode == CallMode::Fresh);
    let named_provider = call.named_provider.as_deref().map(escape);
    let provider = escape(new.profile.provider());
    let model = call.model.as_deref().map(escape);
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
    let newest = jobs.first().map(rows::read_stored).transpose()?;
    for row in &identities {
        let (seq, identity) = (row.number("job")?, of_row(row)?);
        previous = previous.filter(|call| call.seq != seq);
        if let Some(StoredRow { record, .. }) = newest.as_ref().filter(|newest| newest.seq == seq) {
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
