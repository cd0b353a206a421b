//! G4: what a process that dies between the steps leaves, and what the next one does. The step that costs money is sent
//! once, whatever happens.

use std::time::Duration;

use outlast_core::{ProviderErrorKind, Step};

use super::bench::{Bench, finish, until_cursor};
use crate::bench::{follow, patiently};

/// Longer than the grace of a minute.
const BEYOND_THE_GRACE: Duration = Duration::from_secs(61);

/// G4: the session is named, and what is about to be sent is on record, before anything is paid for.
#[tokio::test]
async fn g4_nothing_is_paid_for_before_it_is_on_record() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:ok;delay_ms=0]]").await;
    assert!(run.remote().id.starts_with("sesn_"), "{:?}", run.remote());
    assert_eq!((run.remote().cursor, bench.sim.stats().submits), (None, 0));
    until_cursor(&mut *run, "sending@").await;
    assert_eq!(bench.sim.stats().submits, 0, "recorded before it is sent");
    assert!(matches!(patiently(run.next()).await, Ok(Step::Moved)));
    assert_eq!((run.remote().cursor.as_deref(), bench.sim.stats().submits), (Some("sent"), 1));
    finish(&mut *run).await.unwrap();
}

/// G4: a process that died after it made the session, and before it was about to send.
#[tokio::test]
async fn g4_a_session_that_nothing_was_sent_into_is_gone_on_with() {
    let bench = Bench::new().await;
    let question = "q [[sim:ok;delay_ms=0]]";
    let made = bench.begin(question).await.remote();
    let followed = follow(&mut *bench.resume(question, &made).await).await;
    assert!(followed.end.is_ok(), "{:?}", followed.error());
    assert_eq!(bench.sim.stats().submits, 1);
    assert_eq!(bench.requests("POST /v1/sessions").len(), 2, "one session, one question");
}

/// G4: a process that died when it was about to send: it is looked for until the grace has ended, and never sent.
#[tokio::test]
async fn g4_a_question_that_may_have_been_sent_is_unknown_after_the_grace() {
    let bench = Bench::new().await;
    let question = "q [[sim:ok]]";
    let mut died = bench.begin(question).await;
    until_cursor(&mut *died, "sending@").await;
    let mut run = bench.resume(question, &died.remote()).await;
    let before = bench.requests("GET /v1/sessions/").len();
    let wait = async {
        patiently(async {
            while bench.requests("GET /v1/sessions/").len() < before + 3 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        bench.clock.advance(BEYOND_THE_GRACE);
    };
    let (followed, ()) = tokio::join!(follow(&mut *run), wait);
    assert_eq!(followed.error().kind, ProviderErrorKind::StepUnknown);
    assert_eq!(bench.sim.stats().submits, 0);
}

/// G4: a process that died between the send and its answer, or before it recorded the answer.
#[tokio::test]
async fn g4_a_question_that_was_sent_is_found_and_followed() {
    for scenario in ["ok", "drop_submit", "gateway", "no_id", "gateway;status=502;body=html"] {
        let bench = Bench::new().await;
        let question = format!("q [[sim:{scenario}|ok;delay_ms=0]]");
        let mut died = bench.begin(&question).await;
        until_cursor(&mut *died, "sending@").await;
        let on_record = died.remote();
        let step = patiently(died.next()).await;
        assert!(step.is_ok(), "{scenario}: {step:?}");
        let followed = follow(&mut *bench.resume(&question, &on_record).await).await;
        assert!(followed.end.is_ok(), "{scenario}: {:?}", followed.error());
        assert_eq!(bench.sim.stats().submits, 1, "{scenario}");
    }
}

/// G4: a list that shows the question late, but within the grace: it is found, and not sent a second time.
#[tokio::test]
async fn g4_a_question_that_is_shown_late_is_found_within_the_grace() {
    let bench = Bench::new().await;
    // A third of a second here.
    let question = "q [[sim:drop_submit|late_list;ms=300000|ok;delay_ms=0]]";
    let mut run = bench.begin(question).await;
    until_cursor(&mut *run, "sending@").await;
    let on_record = run.remote();
    tokio::select! {
        step = run.next() => panic!("it was lost: {step:?}"),
        () = bench.until(|stats| stats.submits == 1) => {}
    }
    let mut next = bench.resume(question, &on_record).await;
    let followed = follow(&mut *next).await;
    assert!(followed.end.is_ok(), "{:?}", followed.error());
    assert_eq!(bench.sim.stats().submits, 1);
}

/// G4: a list that shows the question later than the grace: the job is in doubt, and nothing is sent.
#[tokio::test]
async fn g4_a_question_that_is_shown_after_the_grace_is_unknown() {
    let bench = Bench::new().await;
    let question = "q [[sim:drop_submit|late_list;ms=3600000000|ok]]";
    let mut run = bench.begin(question).await;
    let late = async {
        bench.until(|stats| stats.polls >= 3).await;
        bench.clock.advance(BEYOND_THE_GRACE);
    };
    let (followed, ()) = tokio::join!(follow(&mut *run), late);
    assert_eq!(followed.error().kind, ProviderErrorKind::StepUnknown);
    assert_eq!(bench.sim.stats().submits, 1);
}

/// B9a: a question that was certainly refused is on record as not sent, and another try sends it.
#[tokio::test]
async fn b9a_a_refused_question_may_be_sent_by_another_try() {
    let bench = Bench::new().await;
    let question = "q [[sim:http;status=429;times=1|ok;delay_ms=0]]";
    let mut run = bench.begin(question).await;
    until_cursor(&mut *run, "sending@").await;
    assert!(matches!(patiently(run.next()).await, Ok(Step::Moved)));
    assert_eq!(run.remote().cursor, None, "recorded before the error is reported");
    let refused = patiently(run.next()).await.unwrap_err();
    assert!(matches!(refused.kind, ProviderErrorKind::RateLimited { .. }), "{refused:?}");
    let followed = follow(&mut *bench.resume(question, &run.remote()).await).await;
    assert!(followed.end.is_ok(), "{:?}", followed.error());
    let stats = bench.sim.stats();
    assert_eq!((stats.submits, stats.refused), (1, 1));
}

/// G4: a call of `next` that is dropped in the middle of the send must not send a second time.
#[tokio::test]
async fn g4_a_send_that_is_dropped_half_way_is_looked_for() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:late_submit;ms=3600000000|ok;delay_ms=0]]").await;
    until_cursor(&mut *run, "sending@").await;
    tokio::select! {
        step = run.next() => panic!("its answer never comes: {step:?}"),
        () = bench.until(|stats| stats.submits == 1) => {}
    }
    finish(&mut *run).await.unwrap();
    assert_eq!(bench.sim.stats().submits, 1);
}

/// G4: a machine that slept between the record and the send: others may have stopped looking, so it records again.
#[tokio::test]
async fn g4_a_process_that_slept_before_it_sent_records_again() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:ok;delay_ms=0]]").await;
    until_cursor(&mut *run, "sending@").await;
    bench.clock.advance(Duration::from_secs(31));
    assert!(matches!(patiently(run.next()).await, Ok(Step::Moved)));
    assert_eq!((run.remote().cursor, bench.sim.stats().submits), (None, 0));
    finish(&mut *run).await.unwrap();
    assert_eq!(bench.sim.stats().submits, 1);
}
