//! Streams: the sequence of events, re-attaching, interruptions.

use std::time::Duration;

use outlast_simulator::Options;
use serde_json::{Value, json};

use crate::client::{Bench, read, read_all, refusal};

#[tokio::test]
async fn a_stream_contains_all_events_in_order_and_agrees_with_the_poll() {
    let bench = Bench::new().await;
    let input = "wind [[sim:ok;words=30;sources=2;searches=1;delay_ms=0]]";
    let followed = read_all(bench.submit_stream(input).await).await;
    assert!(!followed.broken);
    let mut expected = vec![
        "response.created",
        "response.in_progress",
        "response.reasoning.started",
        "response.reasoning.search_queries",
        "response.reasoning.search_results",
        "response.reasoning.fetch_url_queries",
        "response.reasoning.fetch_url_results",
        "response.reasoning.fetch_url_queries",
        "response.reasoning.fetch_url_results",
        "response.reasoning.stopped",
        "response.output_item.added",
    ];
    expected.extend(["response.output_text.delta"; 6]);
    expected.extend([
        "response.output_text.done",
        "response.output_item.done",
        "response.completed",
    ]);
    assert_eq!(followed.kinds(), expected);
    for (index, event) in followed.events.iter().enumerate() {
        assert_eq!(event["sequence_number"], index);
    }
    let created = &followed.events[0]["response"];
    assert_eq!(created["status"], "in_progress");
    let mut streamed = followed.last()["response"].clone();
    assert_eq!(streamed["id"], created["id"]);
    let text = streamed["output"][3]["content"][0]["text"].as_str().unwrap();
    assert_eq!(followed.text(), text);
    assert_eq!(followed.events[11]["output_index"], 3);
    let mut polled = bench.poll(created["id"].as_str().unwrap()).await;
    for object in [&mut streamed, &mut polled] {
        object["created_at"] = json!(0);
        object["completed_at"] = json!(0);
    }
    assert_eq!(streamed, polled);
}

#[tokio::test]
async fn a_stream_opens_with_the_id_while_the_run_is_still_held() {
    let bench = Bench::new().await;
    let mut response = bench.submit_stream("wind [[sim:ok;hold;delay_ms=0]]").await;
    let opening = read(&mut response, 5).await;
    assert_eq!(opening.last()["type"], "response.reasoning.search_results");
    bench.sim.release();
    let rest = read_all(response).await;
    assert_eq!(rest.last()["type"], "response.completed");
}

#[tokio::test]
async fn a_run_continues_when_its_stream_is_closed() {
    let bench = Bench::new().await;
    let mut response = bench.submit_stream("wind [[sim:ok;hold;delay_ms=0]]").await;
    let opening = read(&mut response, 1).await;
    drop(response);
    bench.sim.release();
    let id = opening.events[0]["response"]["id"].as_str().unwrap();
    assert_eq!(bench.poll(id).await["status"], "completed");
}

#[tokio::test]
async fn a_dropped_stream_resumes_after_the_last_event_seen() {
    let bench = Bench::new().await;
    let input = "wind [[sim:drop;after_events=4;times=2;delay_ms=0]]";
    let first = read_all(bench.submit_stream(input).await).await;
    assert!(first.broken);
    assert_eq!(first.events.len(), 4);
    let id = first.events[0]["response"]["id"].as_str().unwrap();
    let second = read_all(bench.attach(id, 3).await).await;
    assert!(second.broken);
    assert_eq!(second.events.len(), 4);
    assert_eq!(second.events[0]["sequence_number"], 4);
    let third = read_all(bench.attach(id, 7).await).await;
    assert!(!third.broken);
    assert_eq!(third.events[0]["sequence_number"], 8);
    assert_eq!(third.last()["type"], "response.completed");
    let full = third.last()["response"]["output"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(third.text(), full["content"][0]["text"].as_str().unwrap());
    let stats = bench.sim.stats();
    assert_eq!((stats.submits, stats.attaches, stats.runs[0].streams), (1, 2, 3));
}

#[tokio::test]
async fn attaching_after_the_end_gives_an_empty_stream() {
    let bench = Bench::new().await;
    let followed = read_all(bench.submit_stream("wind [[sim:ok;delay_ms=0]]").await).await;
    let id = followed.events[0]["response"]["id"].as_str().unwrap();
    let last = followed.last()["sequence_number"].as_i64().unwrap();
    assert_eq!(read_all(bench.attach(id, last - 1).await).await.events.len(), 1);
    assert_eq!(read_all(bench.attach(id, last).await).await.events.len(), 0);
}

#[tokio::test]
async fn attaching_needs_a_run_submitted_with_a_stream_and_a_start_position() {
    let bench = Bench::new().await;
    let id = bench.submitted("wind [[sim:stuck]]").await;
    assert_eq!(refusal(bench.attach(&id, 0).await).await.0, 400);
    let without_place = bench.get(&format!("/v1/agent/{id}?stream=true")).await;
    assert_eq!(refusal(without_place).await.0, 400);
    let malformed = bench.get(&format!("/v1/agent/{id}?stream=true&starting_after=x")).await;
    assert_eq!(refusal(malformed).await.0, 400);
}

#[tokio::test]
async fn polling_works_when_attaching_is_refused() {
    let bench = Bench::new().await;
    let input = "wind [[sim:drop;after_events=1|no_stream;delay_ms=0]]";
    let followed = read_all(bench.submit_stream(input).await).await;
    let id = followed.events[0]["response"]["id"].as_str().unwrap();
    assert_eq!(refusal(bench.attach(id, 0).await).await.0, 400);
    assert_eq!(bench.poll(id).await["status"], "completed");
}

#[tokio::test]
async fn a_stream_without_a_terminal_event_ends_cleanly() {
    let bench = Bench::new().await;
    let followed = read_all(bench.submit_stream("wind [[sim:no_terminal;delay_ms=0]]").await).await;
    assert!(!followed.broken);
    assert_eq!(followed.last()["type"], "response.output_item.done");
    let id = followed.events[0]["response"]["id"].as_str().unwrap();
    assert_eq!(bench.poll(id).await["status"], "completed");
}

#[tokio::test]
async fn a_cancel_ends_the_stream_with_its_own_event() {
    let bench = Bench::new().await;
    let mut response = bench.submit_stream("wind [[sim:stuck;delay_ms=0]]").await;
    let opening = read(&mut response, 5).await;
    let id = opening.events[0]["response"]["id"].as_str().unwrap();
    bench.cancel(id).await;
    let rest = read_all(response).await;
    assert_eq!(rest.kinds(), ["response.cancelled"]);
    assert_eq!(rest.events[0]["sequence_number"], 5);
    assert_eq!(rest.events[0]["response"]["status"], "cancelled");
}

#[tokio::test]
async fn an_ignored_cancel_is_acknowledged_and_the_run_completes() {
    let bench = Bench::new().await;
    let mut response =
        bench.submit_stream("wind [[sim:cancel;mode=ignored;hold;delay_ms=0]]").await;
    let opening = read(&mut response, 5).await;
    let id = opening.events[0]["response"]["id"].as_str().unwrap();
    assert_eq!(bench.cancel(id).await.status(), 200);
    bench.sim.release();
    assert_eq!(read_all(response).await.last()["type"], "response.completed");
}

#[tokio::test]
async fn a_stuck_run_is_silent_unless_pings_are_requested() {
    let bench = Bench::new().await;
    let mut silent = bench.submit_stream("sun [[sim:stuck;delay_ms=0]]").await;
    let opening = read(&mut silent, 5).await;
    let id = opening.events[0]["response"]["id"].as_str().unwrap();
    let mut pinging = bench.submit_stream("wind [[sim:stuck;pings;delay_ms=0]]").await;
    let mut heard = String::new();
    while heard.matches(": ping\n\n").count() < 5 {
        let chunk = pinging.chunk().await.unwrap().unwrap();
        heard.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert_eq!(bench.poll(id).await["status"], "in_progress");
    bench.cancel(id).await;
    let rest = silent.text().await.unwrap();
    assert!(rest.starts_with("event: response.cancelled\n"), "{rest}");
}

#[tokio::test]
async fn a_run_takes_its_time_divided_by_the_speed() {
    let bench = Bench::with(Options { speed: 100.0, ..Options::default() }).await;
    let begun = tokio::time::Instant::now();
    let followed = read_all(bench.submit_stream("wind [[sim:ok;words=60]]").await).await;
    assert_eq!(followed.last()["type"], "response.completed");
    assert!(begun.elapsed() >= Duration::from_millis(72), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_very_long_report_is_streamed_completely() {
    let bench = Bench::new().await;
    let question = "wind [[sim:ok;words=200000;delay_ms=0]]";
    let text = bench.submit_stream(question).await.text().await.unwrap();
    let mut joined = String::new();
    let mut id = None;
    for frame in text.split("\n\n").filter(|frame| !frame.is_empty()) {
        let event: Value = serde_json::from_str(frame.split_once("\ndata: ").unwrap().1).unwrap();
        joined.push_str(event["delta"].as_str().unwrap_or_default());
        id = id.or(event["response"]["id"].as_str().map(str::to_owned));
    }
    assert_eq!(joined.split_whitespace().count(), 200_000);
    let run = bench.poll(&id.unwrap()).await;
    let message = run["output"].as_array().unwrap().last().unwrap();
    assert_eq!(message["content"][0]["text"], joined);
}
