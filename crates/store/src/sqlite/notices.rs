//! Notices of ended jobs: stored with the end, claimed by one process at a time.

use std::time::Duration;

use outlast_core::{
    ClaimedNotice, EndNotices, Job, Notice, NoticeClaim, NoticeOutcome, Record, Timestamp, rules,
};
use rusqlite::{Connection, OptionalExtension as _};

use super::fault::Fault;
use super::sql;
use super::tx::Tx;
use crate::columns;

/// Stores a notice of the job's end in this commit, if this process keeps notices or the insert asked for one.
pub(super) fn add(tx: &Tx<'_>, notices: EndNotices, record: &Record) -> Result<(), Fault> {
    add_one(tx, notices, record, rules::notice)
}

/// Stores a notice of the question that the job has just asked. It replaces one that was not delivered.
pub(super) fn add_question(tx: &Tx<'_>, notices: EndNotices, record: &Record) -> Result<(), Fault> {
    add_one(tx, notices, record, rules::question_notice)
}

fn add_one(
    tx: &Tx<'_>,
    notices: EndNotices,
    record: &Record,
    of_job: fn(&Job) -> Option<Notice>,
) -> Result<(), Fault> {
    match notices.max(record.notice) {
        EndNotices::Off => return Ok(()),
        EndNotices::Kept => {}
    }
    let Some(Notice { job, body }) = of_job(&record.job) else { return Ok(()) };
    let insert = sql!(sqlite::notices::add);
    sql::execute(tx.connection, insert, (job.to_string(), body, tx.now().as_millis())).map(drop)
}

/// The time at which the next notice is due, which may be in the past.
pub(super) fn next_due(connection: &Connection) -> Result<Option<Timestamp>, Fault> {
    let due: Option<i64> = sql::value(connection, sql!(sqlite::notices::next_due), [])?;
    Ok(due.map(Timestamp::from_millis))
}

/// Claims the notice that has been due for the longest time.
pub(super) fn claim(tx: &Tx<'_>, lease: Duration) -> Result<NoticeClaim, Fault> {
    let now = tx.now();
    let claimed = tx
        .connection
        .prepare_cached(sql!(sqlite::notices::claim))?
        .query_row((now.as_millis(), now.after(lease).as_millis()), |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let Some((job, body, tries)) = claimed else {
        return Ok(NoticeClaim::NoneDue { next: next_due(tx.connection)? });
    };
    let notice = Notice { job: columns::job_id(&job)?, body };
    Ok(NoticeClaim::Claimed(ClaimedNotice { notice, tries }))
}

/// Records the result of a claimed notice. Does nothing if another caller has claimed it since.
pub(super) fn record(
    tx: &Tx<'_>,
    ClaimedNotice { notice, tries }: &ClaimedNotice,
    outcome: NoticeOutcome,
) -> Result<(), Fault> {
    let job = notice.job.to_string();
    match outcome {
        NoticeOutcome::Over => {
            let delete = sql!(sqlite::notices::remove);
            sql::execute(tx.connection, delete, (job, tries))
        }
        NoticeOutcome::Again(wait) => {
            let update = sql!(sqlite::notices::put_off);
            let due_at = tx.now().after(wait).as_millis();
            sql::execute(tx.connection, update, (job, tries, due_at))
        }
    }
    .map(drop)
}
