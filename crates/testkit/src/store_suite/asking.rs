//! Questions of jobs to their owners (M4).

use std::time::Duration;

use outlast_core::{
    Answer, AnswerOutcome, AnswerRefusal, CancelOutcome, CloseReason, Job, JobId, JobQuery,
    JobState, NewQuestion, Prune, QuestionState, RescueBy, Scope, Settlement, StateKind,
    StoreError,
};

use super::fixture::{Fixture, alice, bob, succeed, worker};
use crate::clock::START;

fn approval() -> NewQuestion {
    NewQuestion::approval("plan", "Start? It costs $1.\n\u{0}", NewQuestion::TIMEOUT)
}

async fn answer(fixture: &Fixture, id: &JobId, text: &str) -> AnswerOutcome {
    fixture.store.answer(&Scope::Operator, id, None, text).await.unwrap()
}

/// Asks for an approval and stops until the answer.
async fn wait_for_approval(fixture: &Fixture) -> Job {
    let claimed = fixture.add_claimed().await;
    fixture.store.ask(&claimed.lease, &approval()).await.unwrap();
    fixture.store.settle(&claimed.lease, Settlement::Wait).await.unwrap()
}

async fn ids_in(fixture: &Fixture, states: &[StateKind]) -> Vec<JobId> {
    let query = JobQuery { states: states.to_vec(), limit: 10, ..JobQuery::default() };
    let page = fixture.store.list(&Scope::Operator, &query).await.unwrap();
    page.jobs.iter().map(|job| job.id).collect()
}

/// M4: no worker, no slot, until the answer; the next run finds the answer, also after a crash.
pub async fn m4_a_waiting_job_has_no_worker_until_it_is_answered(fixture: Fixture) {
    let waiting = wait_for_approval(&fixture).await;
    assert_eq!(waiting.kind(), StateKind::Waiting);
    assert_eq!(fixture.read(&waiting.id).await, waiting);
    assert!(fixture.try_claim(&worker("w2")).await.is_none());
    fixture.clock.advance(Duration::from_secs(3600));
    let before = fixture.store.rev().await.unwrap();
    let AnswerOutcome::Accepted(answered) = answer(&fixture, &waiting.id, "yes").await else {
        panic!("it is the first answer")
    };
    assert_eq!(fixture.look(before).await.jobs.len(), 1, "workers are notified");
    assert_eq!(fixture.read(&waiting.id).await, *answered);
    for _ in 0..2 {
        let claimed = fixture.claim().await;
        let found = fixture.store.ask(&claimed.lease, &approval()).await.unwrap();
        let at = START.after(Duration::from_secs(3600));
        let expected = Answer { text: "yes".to_owned(), at, is_default: false };
        assert_eq!(found.state, QuestionState::Answered(expected));
        fixture.end_worker(&worker("w1")).await;
    }
    let claimed = fixture.claim().await;
    let close = |reason| fixture.store.close_question(&claimed.lease, "plan", reason);
    close(CloseReason::Unwanted).await.unwrap();
    let kept = fixture.read(&waiting.id).await.questions.current;
    assert!(kept.is_some(), "an answer that counts is kept");
    close(CloseReason::Recorded).await.unwrap();
    let delivered = fixture.read(&waiting.id).await;
    assert_eq!(delivered.questions.current, None, "a delivered answer is deleted");
    assert_eq!(delivered.questions.waited_ms, 3_600_000);
}

/// M4: of many callers, one answers.
pub async fn m4_one_of_many_concurrent_answers_counts(fixture: Fixture) {
    let waiting = wait_for_approval(&fixture).await;
    let answers = (0..16).map(|number| {
        let store = fixture.store.clone();
        tokio::spawn(async move {
            let text = if number % 2 == 0 { "yes" } else { "no" };
            let scope = Scope::Owner(alice());
            (text, store.answer(&scope, &waiting.id, Some("q1"), text).await.unwrap())
        })
    });
    let mut accepted = Vec::new();
    for answer in answers.collect::<Vec<_>>() {
        match answer.await.unwrap() {
            (text, AnswerOutcome::Accepted(_)) => accepted.push(text),
            (_, AnswerOutcome::Refused(AnswerRefusal::AlreadyAnswered)) => {}
            (_, other) => panic!("{other:?}"),
        }
    }
    assert_eq!(accepted.len(), 1);
    let QuestionState::Answered(answer) =
        fixture.read(&waiting.id).await.questions.current.unwrap().state
    else {
        panic!("it was answered")
    };
    assert_eq!(answer.text, accepted[0]);
}

/// M4: the deadline makes the job claimable, and decides.
pub async fn m4_the_deadline_decides_without_an_answer(fixture: Fixture) {
    let waiting = wait_for_approval(&fixture).await;
    let deadline = START.after(NewQuestion::TIMEOUT);
    assert_eq!(fixture.look(waiting.rev).await.next_due, Some(deadline));
    fixture.clock.set(deadline);
    let late = AnswerRefusal::TooLate(deadline);
    assert_eq!(answer(&fixture, &waiting.id, "yes").await, AnswerOutcome::Refused(late));
    let claimed = fixture.claim().await;
    let found = fixture.store.ask(&claimed.lease, &approval()).await.unwrap();
    let no = Answer { text: "no".to_owned(), at: deadline, is_default: true };
    assert_eq!(found.state, QuestionState::Answered(no));
}

/// M4: an owner answers only their own jobs.
pub async fn m4_only_the_owner_can_answer(fixture: Fixture) {
    let waiting = wait_for_approval(&fixture).await;
    let foreign =
        fixture.store.answer(&Scope::Owner(bob()), &waiting.id, None, "yes").await.unwrap_err();
    assert!(matches!(foreign, StoreError::NotFound), "{foreign:?}");
    assert_eq!(fixture.read(&waiting.id).await, waiting);
    let own = fixture.store.answer(&Scope::Owner(alice()), &waiting.id, None, "maybe").await;
    let refused = AnswerRefusal::NotAChoice(vec!["yes".to_owned(), "no".to_owned()]);
    assert_eq!(own.unwrap(), AnswerOutcome::Refused(refused));
}

/// M4: a worker that lost the job asks nothing and removes nothing.
pub async fn m4_a_stale_lease_asks_nothing(fixture: Fixture) {
    let stale = fixture.add_claimed().await;
    fixture.end_worker(&worker("w1")).await;
    let claimed = fixture.claim().await;
    fixture.store.ask(&claimed.lease, &approval()).await.unwrap();
    let before = fixture.read(&claimed.job.id).await;
    let asked = fixture.store.ask(&stale.lease, &approval()).await.map(drop);
    let closed = fixture.store.close_question(&stale.lease, "plan", CloseReason::Recorded).await;
    for refused in [asked, closed] {
        assert!(matches!(refused, Err(StoreError::LeaseLost)), "{refused:?}");
    }
    assert_eq!(fixture.read(&claimed.job.id).await, before);
}

/// M4: `waiting` is the state of a job with an open question, running or not.
pub async fn m4_waiting_jobs_are_listed_and_counted_as_such(fixture: Fixture) {
    let parked = wait_for_approval(&fixture).await.id;
    let in_run = fixture.add_claimed().await;
    fixture.store.ask(&in_run.lease, &approval()).await.unwrap();
    let running = fixture.add_claimed().await.job.id;
    let queued = fixture.add(super::a_job()).await.id;
    let in_run = in_run.job.id;
    use StateKind::{Queued, Running, Succeeded, Waiting};
    let cases = [
        (&[Waiting][..], vec![in_run, parked]),
        (&[Queued], vec![queued]),
        (&[Running], vec![running]),
        (&[Running, Waiting], vec![running, in_run, parked]),
        (&[Queued, Running], vec![queued, running]),
        (&[Waiting, Succeeded], vec![in_run, parked]),
        (&StateKind::UNFINISHED, vec![queued, running, in_run, parked]),
    ];
    for (states, expected) in cases {
        assert_eq!(ids_in(&fixture, states).await, expected, "{states:?}");
    }
    let all = JobQuery { limit: 10, ..JobQuery::default() };
    let page = fixture.store.list(&Scope::Operator, &all).await.unwrap();
    let states: Vec<StateKind> = page.jobs.iter().map(|job| job.state).collect();
    assert_eq!(states, [Queued, Running, Waiting, Waiting]);
    let counts = fixture.store.counts(&Scope::Operator, 10).await.unwrap();
    let unfinished = counts.iter().filter(|count| !count.state.is_terminal());
    assert_eq!(unfinished.map(|count| count.jobs).collect::<Vec<_>>(), [1, 1, 2]);
}

/// M4: the end of a job, and its removal, take the question along.
pub async fn m4_the_question_of_an_ended_job_is_deleted(fixture: Fixture) {
    let waiting = wait_for_approval(&fixture).await;
    let CancelOutcome::Now(cancelled) = fixture.cancel(&waiting.id).await else {
        panic!("it waits")
    };
    assert_eq!(cancelled.questions.current, None);
    assert_eq!(fixture.read(&waiting.id).await, cancelled);
    let refused = AnswerOutcome::Refused(AnswerRefusal::NoQuestion);
    assert_eq!(answer(&fixture, &waiting.id, "yes").await, refused);
    let claimed = fixture.add_claimed().await;
    fixture.store.ask(&claimed.lease, &approval()).await.unwrap();
    let ended = fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    assert_eq!((ended.kind(), &ended.questions.current), (StateKind::Succeeded, &None));
    let before = fixture.clock_now().after(Duration::from_secs(1));
    let prune = Prune::EndedBefore(before);
    assert_eq!(fixture.store.prune(&Scope::Operator, &prune).await.unwrap().jobs, 2);
}

/// M4: a question of a job whose worker crashed stays open, and its next run finds it.
pub async fn m4_a_question_survives_the_crash_of_its_worker(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let asked = fixture.store.ask(&claimed.lease, &approval()).await.unwrap();
    fixture.store.deregister_worker(&worker("w1")).await.unwrap();
    fixture.store.rescue(&RescueBy::DeadProcess).await.unwrap();
    let rescued = fixture.read(&claimed.job.id).await;
    assert!(matches!(rescued.state, JobState::Queued { run_at } if run_at == START));
    assert_eq!((rescued.kind(), rescued.open_question()), (StateKind::Waiting, Some(&asked)));
    let next = fixture.claim().await;
    assert_eq!(fixture.store.ask(&next.lease, &approval()).await.unwrap(), asked);
}
