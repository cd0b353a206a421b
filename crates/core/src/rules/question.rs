//! Questions (M4): one at a time, the first answer counts, and the deadline decides without one.

use crate::{
    Answer, AnswerRefusal, CloseReason, JobState, Lease, NewQuestion, Question, QuestionState,
    Record, StoreError, Timestamp,
};

use super::write::check_lease;

/// The maximum number of bytes of a question, of a choice and of an answer. A longer question is cut.
pub const MAX_QUESTION: usize = 16 * 1024;

/// Asks a question, or finds it. A question under another key is replaced: its run does not ask it any more. After the
/// deadline an open question gets its default as answer, or ends without one.
pub fn ask(
    record: &mut Record,
    lease: &Lease,
    new: &NewQuestion,
    now: Timestamp,
) -> Result<Question, StoreError> {
    check_lease(record, lease)?;
    let questions = &mut record.job.questions;
    let mut question = match questions.current.take().filter(|question| question.key == new.key) {
        Some(found) => found,
        None => {
            questions.asked += 1;
            Question {
                id: format!("q{}", questions.asked),
                key: new.key.clone(),
                text: cut(&new.text).to_owned(),
                choices: new.choices.iter().map(|choice| cut(choice).to_owned()).collect(),
                default: new.default.as_deref().map(|default| cut(default).to_owned()),
                asked_at: now,
                deadline: now.after(new.timeout),
                parked_at: None,
                state: QuestionState::Open,
            }
        }
    };
    if let Some(parked_at) = question.parked_at.take() {
        questions.waited_ms = add_wait(questions.waited_ms, parked_at, now);
    }
    if question.state == QuestionState::Open && question.deadline <= now {
        question.state = match &question.default {
            Some(text) => {
                let at = question.deadline;
                QuestionState::Answered(Answer { text: text.clone(), at, is_default: true })
            }
            None => QuestionState::NotAnswered,
        };
    }
    questions.current = Some(question.clone());
    record.job.updated_at = now;
    Ok(question)
}

/// Removes the question of this key. An answer that counts and is not recorded yet stays when nobody waits for it any more.
pub fn close_question(
    record: &mut Record,
    lease: &Lease,
    key: &str,
    reason: CloseReason,
    now: Timestamp,
) -> Result<(), StoreError> {
    check_lease(record, lease)?;
    let questions = &mut record.job.questions;
    let is_closed = |question: &Question| match reason {
        CloseReason::Recorded => question.key == key,
        CloseReason::Unwanted => question.key == key && question.state == QuestionState::Open,
    };
    if questions.current.as_ref().is_some_and(is_closed) {
        questions.current = None;
        record.job.updated_at = now;
    }
    Ok(())
}

/// Answers the open question. `id` names it, if the caller knows which one it answers. A job that waits without a worker
/// returns to the queue.
pub fn answer(
    record: &mut Record,
    id: Option<&str>,
    text: &str,
    now: Timestamp,
) -> Result<(), AnswerRefusal> {
    let job = &mut record.job;
    if job.state.kind().is_terminal() {
        return Err(AnswerRefusal::NoQuestion);
    }
    let questions = &mut job.questions;
    let Some(question) = questions.current.as_mut() else {
        // A question that this job has asked before was answered.
        let was_asked = id.and_then(number_of).is_some_and(|number| number <= questions.asked);
        let refusal =
            if was_asked { AnswerRefusal::AlreadyAnswered } else { AnswerRefusal::NoQuestion };
        return Err(refusal);
    };
    if id.is_some_and(|id| id != question.id) {
        let is_older = id.and_then(number_of) < number_of(&question.id);
        return Err(match is_older {
            true => AnswerRefusal::AlreadyAnswered,
            false => AnswerRefusal::NoQuestion,
        });
    }
    match question.state {
        QuestionState::Open if now < question.deadline => {}
        QuestionState::Open | QuestionState::NotAnswered => {
            return Err(AnswerRefusal::TooLate(question.deadline));
        }
        QuestionState::Answered(_) => return Err(AnswerRefusal::AlreadyAnswered),
    }
    let text = valid_answer(question, text)?;
    question.state = QuestionState::Answered(Answer { text, at: now, is_default: false });
    if let Some(parked_at) = question.parked_at.take() {
        questions.waited_ms = add_wait(questions.waited_ms, parked_at, now);
        if let JobState::Queued { run_at } = &mut job.state {
            *run_at = (*run_at).min(now);
        }
    }
    job.updated_at = now;
    Ok(())
}

/// Returns the state of a job whose run stops until its question is answered.
pub(super) fn park(record: &mut Record, now: Timestamp) -> JobState {
    let current = record.job.questions.current.as_mut();
    let open = current.filter(|question| question.state == QuestionState::Open);
    let run_at = open.map_or(now, |question| {
        question.parked_at = Some(now);
        question.deadline
    });
    JobState::Queued { run_at }
}

/// Returns the answer in the words of the question.
fn valid_answer(question: &Question, text: &str) -> Result<String, AnswerRefusal> {
    if text.len() > MAX_QUESTION {
        return Err(AnswerRefusal::TooLong(MAX_QUESTION));
    }
    if question.choices.is_empty() {
        return Ok(text.to_owned());
    }
    let text = text.trim().to_lowercase();
    let chosen = question.choices.iter().find(|choice| choice.trim().to_lowercase() == text);
    chosen.cloned().ok_or_else(|| AnswerRefusal::NotAChoice(question.choices.clone()))
}

fn number_of(id: &str) -> Option<u32> {
    id.strip_prefix('q')?.parse().ok()
}

fn add_wait(waited_ms: u64, parked_at: Timestamp, now: Timestamp) -> u64 {
    let waited = u64::try_from(now.since(parked_at).as_millis()).unwrap_or(u64::MAX);
    waited_ms.saturating_add(waited)
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_QUESTION)]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::tests::{NOW, running};
    use crate::rules::{cancel, claim, is_claimable, life_ends_at, settle};
    use crate::{Checkpoint, Profile, Settlement, StateKind};

    const DAY: Duration = NewQuestion::TIMEOUT;

    fn approval() -> NewQuestion {
        NewQuestion::approval("plan", "Start?", DAY)
    }

    fn free(key: &str) -> NewQuestion {
        let timeout = Duration::from_secs(60);
        let text = "Which?".to_owned();
        NewQuestion { key: key.to_owned(), text, choices: Vec::new(), default: None, timeout }
    }

    /// M4: a job that waits has no worker, returns at its answer, and its life is longer by the wait.
    #[test]
    fn m4_a_waiting_job_returns_to_the_queue_when_it_is_answered() {
        let (mut record, lease) = running(Checkpoint::NotBegun);
        let life = life_ends_at(&record.job).unwrap();
        ask(&mut record, &lease, &approval(), NOW).unwrap();
        assert_eq!(
            (record.job.kind(), record.job.state.kind()),
            (StateKind::Waiting, StateKind::Running)
        );
        settle(&mut record, &lease, &Settlement::Wait, NOW).unwrap();
        assert_eq!((record.job.kind(), &record.holder), (StateKind::Waiting, &None));
        let mine = [Profile::new("agent")];
        let hour = NOW.after(Duration::from_secs(3600));
        assert!(!is_claimable(&record, &mine, hour));
        assert!(is_claimable(&record, &mine, NOW.after(DAY)), "the deadline decides");
        answer(&mut record, Some("q1"), " YES ", hour).unwrap();
        assert_eq!(record.job.kind(), StateKind::Queued);
        assert!(is_claimable(&record, &mine, hour));
        assert_eq!(life_ends_at(&record.job), Some(life.after(Duration::from_secs(3600))));
        let lease = claim(&mut record, &lease.worker, hour, hour);
        let found = ask(&mut record, &lease, &approval(), hour).unwrap();
        let expected = Answer { text: "yes".to_owned(), at: hour, is_default: false };
        assert_eq!(found.state, QuestionState::Answered(expected));
        close_question(&mut record, &lease, "plan", CloseReason::Unwanted, hour).unwrap();
        assert!(record.job.questions.current.is_some(), "an answer that counts is kept");
        close_question(&mut record, &lease, "plan", CloseReason::Recorded, hour).unwrap();
        assert_eq!(record.job.questions.current, None, "a delivered answer is deleted");
    }

    /// M4: the first answer counts, and one for another question does not.
    #[test]
    fn m4_the_first_answer_counts() {
        let (mut record, lease) = running(Checkpoint::NotBegun);
        assert_eq!(answer(&mut record, None, "x", NOW), Err(AnswerRefusal::NoQuestion));
        ask(&mut record, &lease, &free("one"), NOW).unwrap();
        assert_eq!(answer(&mut record, Some("q2"), "x", NOW), Err(AnswerRefusal::NoQuestion));
        answer(&mut record, None, "x", NOW).unwrap();
        let again = AnswerRefusal::AlreadyAnswered;
        assert_eq!(answer(&mut record, None, "y", NOW), Err(again.clone()));
        close_question(&mut record, &lease, "one", CloseReason::Recorded, NOW).unwrap();
        assert_eq!(answer(&mut record, Some("q1"), "y", NOW), Err(again.clone()));
        ask(&mut record, &lease, &free("two"), NOW).unwrap();
        assert_eq!(answer(&mut record, Some("q1"), "y", NOW), Err(again));
        answer(&mut record, Some("q2"), "y", NOW).unwrap();
    }

    /// M4: only a choice answers a question with choices; case does not matter.
    #[test]
    fn m4_an_answer_is_one_of_the_choices() {
        let (mut record, lease) = running(Checkpoint::NotBegun);
        ask(&mut record, &lease, &approval(), NOW).unwrap();
        let choices = ["yes", "no"].map(str::to_owned).to_vec();
        let refused = answer(&mut record, None, "perhaps", NOW);
        assert_eq!(refused, Err(AnswerRefusal::NotAChoice(choices)));
        let long = "y".repeat(MAX_QUESTION + 1);
        assert_eq!(
            answer(&mut record, None, &long, NOW),
            Err(AnswerRefusal::TooLong(MAX_QUESTION))
        );
        answer(&mut record, None, "No", NOW).unwrap();
    }

    /// M4: after the deadline the default is used, which is no for an approval; without one there is no answer.
    #[test]
    fn m4_the_deadline_uses_the_default() {
        let late = NOW.after(DAY);
        let no = Answer { text: "no".to_owned(), at: late, is_default: true };
        let cases = [
            (approval(), QuestionState::Answered(no)),
            (NewQuestion { timeout: DAY, ..free("one") }, QuestionState::NotAnswered),
        ];
        for (new, expected) in cases {
            let (mut record, lease) = running(Checkpoint::NotBegun);
            ask(&mut record, &lease, &new, NOW).unwrap();
            let refused = answer(&mut record, None, "yes", late);
            assert_eq!(refused, Err(AnswerRefusal::TooLate(late)));
            let found = ask(&mut record, &lease, &new, late).unwrap();
            assert_eq!(found.state, expected);
            assert_ne!(record.job.kind(), StateKind::Waiting);
        }
    }

    /// M4: an answer that comes before the job stops is found at once.
    #[test]
    fn m4_an_answer_before_the_stop_is_not_lost() {
        let (mut record, lease) = running(Checkpoint::NotBegun);
        ask(&mut record, &lease, &approval(), NOW).unwrap();
        answer(&mut record, None, "yes", NOW).unwrap();
        settle(&mut record, &lease, &Settlement::Wait, NOW).unwrap();
        assert_eq!(record.job.state, JobState::Queued { run_at: NOW });
    }

    /// M4: the end of a job removes its question.
    #[test]
    fn m4_a_cancelled_job_has_no_question() {
        let (mut record, lease) = running(Checkpoint::NotBegun);
        ask(&mut record, &lease, &approval(), NOW).unwrap();
        cancel(&mut record, NOW);
        assert_eq!(record.job.questions.current, None);
        assert_eq!(answer(&mut record, None, "yes", NOW), Err(AnswerRefusal::NoQuestion));
        assert!(ask(&mut record, &lease, &approval(), NOW).is_err(), "the lease is lost");
    }
}
