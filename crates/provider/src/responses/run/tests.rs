//! What events and trouble in passing make of a run.

use super::*;
use crate::vendor::{Service, unreadable};

fn run() -> ResponseRun {
    let api = Responses { service: Service::nowhere(), dialect: &crate::perplexity::AGENT };
    let remote = api.remote("resp_1".to_owned());
    ResponseRun::resumed(api, remote)
}

fn wait(run: &ResponseRun) -> u64 {
    let Source::Check { at } = run.source else { panic!("the run follows a stream") };
    (at - Instant::now()).as_secs()
}

/// A5: the series of waits, kept through every kind of passing trouble; an event begins it anew.
#[tokio::test(start_paused = true)]
async fn waits_grow_until_the_run_is_heard_from_again() {
    let mut run = run();
    assert_eq!(wait(&run), 0);
    let mut waits = Vec::new();
    for round in 0..4 {
        run.checks.failed(&run.remote, unreadable()).unwrap();
        run.wait_for_next_check();
        waits.push(wait(&run));
        if round % 2 == 0 {
            run.checks.not_found().unwrap();
            run.wait_for_next_check();
        } else {
            run.stream_ended(None);
        }
        waits.push(wait(&run));
    }
    assert_eq!(waits, [1, 2, 3, 5, 8, 10, 10, 10]);
    let event =
        Event::parse(&mut r#"{"type":"response.in_progress","sequence_number":1}"#.to_owned());
    assert!(run.heard(event.unwrap()).unwrap().is_none());
    run.wait_for_next_check();
    assert_eq!(wait(&run), 1);
}

/// A5: five minutes of nothing but 404, however often it is looked for; anything else begins them anew.
#[tokio::test(start_paused = true)]
async fn a5_a_run_is_lost_after_five_minutes_of_nothing_but_404() {
    let second = std::time::Duration::from_secs(1);
    let mut run = run();
    for round in 0..3 {
        for _ in 0..300 {
            assert!(run.checks.not_found().is_ok(), "round {round}");
            tokio::time::advance(second).await;
        }
        match round {
            0 => run.checks.failed(&run.remote, unreadable()).unwrap(),
            1 => run.checks.found(),
            _ => {}
        }
    }
    assert_eq!(run.checks.not_found().unwrap_err().trouble, outlast_core::Trouble::RunLost);
}

/// B9a: a stream's own error is not the end of the run.
#[tokio::test(start_paused = true)]
async fn an_error_of_the_stream_leads_to_a_check_not_to_a_failed_run() {
    let mut run = run();
    let event =
        Event::parse(&mut r#"{"type":"error","error":{"message":"overloaded"}}"#.to_owned());
    assert!(run.heard(event.unwrap()).unwrap().is_none());
    assert_eq!(wait(&run), 1);
}

/// B6: events may come twice, and numbers may be left out.
#[tokio::test(start_paused = true)]
async fn an_event_told_again_counts_once_and_a_gap_is_no_trouble() {
    let mut run = run();
    let mut tell = |number: u64| {
        let mut event = format!(
            r#"{{"type":"response.reasoning.search_queries","sequence_number":{number},"queries":["q"]}}"#
        );
        match run.heard(Event::parse(&mut event).unwrap()).unwrap() {
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

/// Numbers that begin anew must not hide the end.
#[tokio::test(start_paused = true)]
async fn an_end_counts_whatever_its_number() {
    let mut run = run();
    let event = |json: &str| Event::parse(&mut json.to_owned()).unwrap();
    run.heard(event(r#"{"type":"response.in_progress","sequence_number":50}"#)).unwrap();
    let end = r#"{"type":"response.completed","sequence_number":2,"response":{"status":"completed",
        "output":[{"type":"message","content":[{"type":"output_text","text":"t"}]}]}}"#;
    assert!(matches!(run.heard(event(end)).unwrap(), Some(Step::Done { .. })));
}
