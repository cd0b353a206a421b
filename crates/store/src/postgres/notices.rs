//! Notices of ended jobs: stored with the end, claimed by one process at a time.

use std::time::Duration;

use outlast_core::{ClaimedNotice, Job, Notice, NoticeClaim, NoticeOutcome, Timestamp, rules};

use super::fault::Fault;
use super::rows::get;
use super::tx::{Param, Tx};
use crate::columns::{self, Columns as _};

/// Takes the parameters of [`insert_params`].
pub(super) const ADD: &str = sql!(postgres::notices::add);

/// Returns the parameters for a notice of the job's end; `None` if the job has no notice.
pub(super) fn insert_params(job: &Job, now: Timestamp) -> Option<Vec<Param>> {
    params(rules::notice(job)?, now)
}

/// Returns the parameters for a notice of the question that the job has just asked.
pub(super) fn question_params(job: &Job, now: Timestamp) -> Option<Vec<Param>> {
    params(rules::question_notice(job)?, now)
}

fn params(Notice { job, body }: Notice, now: Timestamp) -> Option<Vec<Param>> {
    Some(vec![Box::new(job.to_string()), Box::new(body), Box::new(now.as_millis())])
}

/// Claims the notice that has been due for the longest time.
pub(super) async fn claim(tx: &mut Tx, lease: Duration) -> Result<NoticeClaim, Fault> {
    let (given, lease) = (tx.given_seq(), columns::millis(lease));
    let [claimed, next] = tx
        .load([
            (sql!(postgres::notices::claim), &[&given, &lease]),
            (sql!(postgres::notices::next_due), &[]),
        ])
        .await?;
    if let Some(row) = claimed.first() {
        let notice = Notice { job: row.job_id()?, body: get(row, "body")? };
        let tries = row.small("tries")?;
        return Ok(NoticeClaim::Claimed(ClaimedNotice { notice, tries }));
    }
    let next = next.first().map(|row| row.maybe_time("next")).transpose()?.flatten();
    Ok(NoticeClaim::NoneDue { next })
}

/// Records the result of a claimed notice. Does nothing if another caller has claimed it since.
pub(super) async fn record(
    tx: &mut Tx,
    ClaimedNotice { notice, tries }: &ClaimedNotice,
    outcome: NoticeOutcome,
) -> Result<(), Fault> {
    let (job, tries) = (notice.job.to_string(), i64::from(*tries));
    match outcome {
        NoticeOutcome::Over => {
            let delete = sql!(postgres::notices::remove);
            tx.load([(delete, &[&job, &tries])]).await?;
        }
        NoticeOutcome::Again(wait) => {
            let (given, wait) = (tx.given_seq(), columns::millis(wait));
            tx.load([(sql!(postgres::notices::put_off), &[&job, &tries, &given, &wait])]).await?;
        }
    }
    Ok(())
}
