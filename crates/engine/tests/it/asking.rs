//! Questions (M4): a run asks and stops; the answer, or the deadline, continues it.

use outlast_core::{AnswerOutcome, AnswerRefusal, NewQuestion, RemoteStop, Scope, StateKind};
use outlast_engine::Options;
use outlast_testkit::scripted::Act;

use crate::bench::{Bench, deliver, owner, remote_stop, seconds, text};

fn approval() -> Act {
    Act::Ask(NewQuestion::approval("plan", "Start?", NewQuestion::TIMEOUT))
}

/// M4: a waiting job leaves its slot to others, and continues when it is answered.
#[tokio::test(start_paused = true)]
async fn m4_a_waiting_job_holds_no_slot_and_continues_when_answered() {
    let bench = Bench::new();
    let process = bench.process_with(Options { concurrency: 1, ..Options::default() }).await;
    let id = process.under_way(&bench, 1).await;
    bench.provider.act(1, approval());
    bench.quiet().await;
    assert_eq!(bench.job(&id).await.kind(), StateKind::Waiting);
    let other = process.under_way(&bench, 2).await;
    deliver(&bench, 2);
    process.end(&other).await;
    deliver(&bench, 1);
    tokio::time::sleep(seconds(3600)).await;
    assert_eq!(bench.job(&id).await.kind(), StateKind::Waiting);
    let answered = process.engine.answer(&owner(), &id, Some("q1"), "yes").await.unwrap();
    assert!(matches!(answered, Some(AnswerOutcome::Accepted(_))), "{answered:?}");
    assert_eq!(text(&process.end(&id).await.job), "because");
    let late = process.engine.answer(&owner(), &id, Some("q1"), "no").await.unwrap();
    assert_eq!(late, Some(AnswerOutcome::Refused(AnswerRefusal::NoQuestion)));
    assert_eq!(bench.provider.keys().len(), 2, "nothing was begun a second time");
}

/// M4: no cancels the job, also the no of a deadline.
#[tokio::test(start_paused = true)]
async fn m4_a_declined_job_is_cancelled() {
    for is_answered in [true, false] {
        let bench = Bench::new();
        let process = bench.process().await;
        let id = process.under_way(&bench, 1).await;
        bench.provider.act(1, approval());
        bench.quiet().await;
        if is_answered {
            process.engine.answer(&owner(), &id, None, "no").await.unwrap();
        } else {
            tokio::time::sleep(NewQuestion::TIMEOUT + seconds(60)).await;
        }
        bench.quiet().await;
        let job = bench.job(&id).await;
        assert_eq!(job.kind(), StateKind::Cancelled, "{is_answered}");
        assert_eq!(remote_stop(&job), RemoteStop::Ended);
    }
}

/// M4: a crash between the question and the answer loses neither.
#[tokio::test(start_paused = true)]
async fn m4_a_question_survives_its_process() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.provider.act(1, approval());
    bench.quiet().await;
    process.die().await;
    let stranger = Scope::Owner(outlast_core::OwnerId::new("stranger"));
    let next = bench.process().await;
    assert_eq!(next.engine.answer(&stranger, &id, None, "yes").await.unwrap(), None);
    next.engine.answer(&owner(), &id, None, "yes").await.unwrap();
    deliver(&bench, 1);
    assert_eq!(text(&next.end(&id).await.job), "because");
}
