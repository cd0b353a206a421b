//! Events, and errors in passing, of a run.

use tokio::time::Instant;

use super::*;
use crate::vendor::unreadable;

fn run() -> FollowedRun<ResponseRun> {
    let api = Responses { service: Service::nowhere(), dialect: &crate::perplexity::AGENT };
    let remote = api.remote("resp_1");
    ResponseRun::resume(api, remote)
}

fn wait(run: &FollowedRun<ResponseRun>) -> u64 {
    (run.link.check_at.unwrap() - Instant::now()).as_secs()
}

fn hear(run: &mut FollowedRun<ResponseRun>, event: &str) -> Option<Step> {
    let event = Event::parse(&mut event.to_owned()).unwrap();
    run.vendor.hear(&mut run.link, event).unwrap()
}

/// A5: the series of waits, kept through every kind of passing error; an event restarts it.
#[tokio::test(start_paused = true)]
async fn waits_grow_until_there_is_news_of_the_run() {
    let mut run = run();
    assert_eq!(wait(&run), 0);
    let mut waits = Vec::new();
    for round in 0..4 {
        run.link.checks.handle_failure(&run.link.remote, unreadable()).unwrap();
        run.link.check_later();
        waits.push(wait(&run));
        if round % 2 == 0 {
            run.link.checks.handle_not_found().unwrap();
            run.link.check_later();
        } else {
            run.vendor.stream_ended(&mut run.link);
        }
        waits.push(wait(&run));
    }
    assert_eq!(waits, [1, 2, 3, 5, 8, 10, 10, 10]);
    assert!(hear(&mut run, r#"{"type":"response.in_progress","sequence_number":1}"#).is_none());
    run.link.check_later();
    assert_eq!(wait(&run), 1);
}

/// A5: five minutes of nothing but 404, however often it is looked for; anything else restarts them.
#[tokio::test(start_paused = true)]
async fn a5_a_run_is_lost_after_five_minutes_of_nothing_but_404() {
    let second = std::time::Duration::from_secs(1);
    let mut run = run();
    for round in 0..3 {
        for _ in 0..300 {
            assert!(run.link.checks.handle_not_found().is_ok(), "round {round}");
            tokio::time::advance(second).await;
        }
        match round {
            0 => run.link.checks.handle_failure(&run.link.remote, unreadable()).unwrap(),
            1 => run.link.checks.handle_found(),
            _ => {}
        }
    }
    assert_eq!(
        run.link.checks.handle_not_found().unwrap_err().kind,
        outlast_core::ProviderErrorKind::RunLost
    );
}

/// B9a: a stream's own error is not the end of the run.
#[tokio::test(start_paused = true)]
async fn an_error_of_the_stream_leads_to_a_check_not_to_a_failed_run() {
    let mut run = run();
    assert!(hear(&mut run, r#"{"type":"error","error":{"message":"overloaded"}}"#).is_none());
    assert_eq!(wait(&run), 1);
}

/// B6: events may come twice, and numbers may be left out.
#[tokio::test(start_paused = true)]
async fn a_repeated_event_counts_once_and_a_gap_is_harmless() {
    let mut run = run();
    let mut tell = |number: u64| {
        let event = format!(
            r#"{{"type":"response.reasoning.search_queries","sequence_number":{number},"queries":["q"]}}"#
        );
        match hear(&mut run, &event) {
            Some(Step::Progress(progress)) => Some(progress.message),
            other => {
                assert!(other.is_none());
                None
            }
        }
    };
    assert_eq!(tell(3).unwrap(), "Researching: 1 query asked, 0 sources read");
    assert_eq!(tell(3), None);
    assert_eq!(tell(2), None);
    assert_eq!(tell(9).unwrap(), "Researching: 2 queries asked, 0 sources read");
}

/// Numbers that start over must not hide the end.
#[tokio::test(start_paused = true)]
async fn an_end_with_any_number_counts() {
    let mut run = run();
    hear(&mut run, r#"{"type":"response.in_progress","sequence_number":50}"#);
    let end = r#"{"type":"response.completed","sequence_number":2,"response":{"status":"completed",
        "output":[{"type":"message","content":[{"type":"output_text","text":"t"}]}]}}"#;
    assert!(matches!(hear(&mut run, end), Some(Step::Done { .. })));
}
