//! The approval of a plan (M4).

use outlast_core::{AnswerOutcome, NewQuestion, Scope, Step};
use serde_json::json;

use crate::bench::Bench;

async fn bench() -> Bench {
    let mut bench = Bench::new("-", "-").await;
    bench.request["approve_plan"] = json!(true);
    bench
}

async fn kinds(bench: &Bench) -> Vec<String> {
    let steps = bench.fixture.store.steps(&Scope::Operator, &bench.lease.job).await.unwrap();
    let mut kinds: Vec<String> = steps.into_iter().map(|step| step.kind).collect();
    kinds.sort();
    kinds
}

async fn answer(bench: &Bench, text: &str) {
    let (store, id) = (&bench.fixture.store, &bench.lease.job);
    let answered = store.answer(&Scope::Operator, id, None, text).await.unwrap();
    assert!(matches!(answered, AnswerOutcome::Accepted(_)), "{answered:?}");
}

/// M4: nothing but the plan is paid for before the approval, however often the run is resumed.
#[tokio::test]
async fn m4_the_paid_part_starts_after_the_approval() {
    let bench = bench().await;
    for _ in 0..3 {
        let stopped = bench.stop().await;
        assert!(matches!(stopped, Ok(Step::Wait)), "{stopped:?}");
        assert_eq!(kinds(&bench).await, ["decision", "plan", "questions"]);
    }
    let job = bench.fixture.read(&bench.lease.job).await;
    let question = job.open_question().unwrap();
    assert!(question.text.contains("1. ") && question.text.contains("it is free"), "{question:?}");
    answer(&bench, "yes").await;
    let done = bench.stop().await;
    assert!(matches!(done, Ok(Step::Done { .. })), "{done:?}");
    let job = bench.fixture.read(&bench.lease.job).await;
    assert_eq!(job.questions.current, None, "a delivered answer is deleted");
    assert!(matches!(bench.stop().await, Ok(Step::Done { .. })), "it is not asked again");
}

/// M4: a no, and the deadline, stop the run before it costs more.
#[tokio::test]
async fn m4_a_no_or_the_deadline_cancels_the_run() {
    for is_answered in [true, false] {
        let bench = bench().await;
        assert!(matches!(bench.stop().await, Ok(Step::Wait)));
        match is_answered {
            true => answer(&bench, "no").await,
            false => bench.fixture.clock.advance(NewQuestion::TIMEOUT),
        }
        for _ in 0..2 {
            let stopped = bench.stop().await;
            assert!(matches!(stopped, Ok(Step::Cancel)), "{stopped:?}");
        }
        let expected = ["decision", "plan", "questions"];
        assert_eq!(kinds(&bench).await, expected, "a later job asks again");
    }
}
