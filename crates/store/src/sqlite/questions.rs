//! Questions of jobs to their owners: asked under a lease, answered by anyone who may see the job.

use outlast_core::{
    AnswerOutcome, EndNotices, Job, JobId, Lease, NewQuestion, Question, Scope, StoreError, rules,
};
use rusqlite::Connection;

use super::fault::Fault;
use super::rows::{self, SaveScope, StoredRow};
use super::tx::Tx;
use super::{notices, sql};
use crate::columns::questions_row;

/// Asks a question, or finds it.
pub(super) fn ask(
    tx: &mut Tx<'_>,
    lease: &Lease,
    new: &NewQuestion,
    notices: EndNotices,
) -> Result<Question, Fault> {
    let id = lease.job.to_string();
    let held = rows::light(tx.connection, "id = ?1 AND state = 'running'", id)?;
    let StoredRow { seq, mut record } = held.ok_or(StoreError::LeaseLost)?;
    let before = record.job.questions.asked;
    let question = rules::ask(&mut record, lease, new, tx.now())?;
    rows::save(tx, seq, &mut record, SaveScope::All)?;
    if record.job.questions.asked > before {
        notices::add_question(tx, notices, &record)?;
    }
    Ok(question)
}

/// Answers the open question of a job.
pub(super) fn answer(
    tx: &mut Tx<'_>,
    scope: &Scope,
    id: &JobId,
    question: Option<&str>,
    text: &str,
) -> Result<AnswerOutcome, Fault> {
    let now = tx.now();
    let found = rows::whole(tx.connection, "id = ?1", id.to_string())?;
    let visible = found.filter(|StoredRow { record, .. }| {
        scope.sees(&record.job.new.owner) && !rules::is_expired(&record.job, now)
    });
    let StoredRow { seq, mut record } = visible.ok_or(StoreError::NotFound)?;
    if let Err(refusal) = rules::answer(&mut record, question, text, now) {
        return Ok(AnswerOutcome::Refused(refusal));
    }
    rows::save(tx, seq, &mut record, SaveScope::All)?;
    Ok(AnswerOutcome::Accepted(Box::new(record.job)))
}

/// Saves the questions of a job, if it has asked any.
pub(super) fn save(connection: &Connection, seq: i64, job: &Job) -> Result<(), Fault> {
    let Some((is_open, questions)) = questions_row(job)? else { return Ok(()) };
    let upsert = sql!(sqlite::questions::save);
    sql::execute(connection, upsert, (seq, is_open, questions)).map(drop)
}
