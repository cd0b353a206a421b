//! Temporary faults and faults that depend on time: limits, retention, stale polls, lost runs, cancels, the
//! virtual clock.

use std::time::Duration;

use outlast_simulator::{ClockMode, Options, SonarMode};
use serde_json::{Value, json};

use crate::client::{Bench, PATIENCE, read, read_all, refusal};
use crate::sonar::live;

async fn still() -> Bench {
    let (clock, sonar) = (ClockMode::Virtual, SonarMode::Live);
    Bench::with(Options { clock, sonar, ..Options::default() }).await
}

fn request(question: &str) -> Value {
    json!({"request": {"model": "sonar", "messages": [{"role": "user", "content": question}]}})
}

/// Submits a Sonar job and returns the path of its GET.
async fn job(bench: &Bench, question: &str) -> String {
    let job = bench.post("/v1/async/sonar", &request(question)).await.unwrap();
    let job: Value = job.json().await.unwrap();
    format!("/v1/async/sonar/{}", job["id"].as_str().unwrap())
}

async fn status(bench: &Bench, path: &str) -> String {
    let response = bench.get(path).await;
    match response.status().as_u16() {
        200 => response.json::<Value>().await.unwrap()["status"].as_str().unwrap().to_owned(),
        status => status.to_string(),
    }
}

#[tokio::test]
async fn nothing_happens_until_the_virtual_clock_is_advanced() {
    let bench = still().await;
    let id = bench.submitted("wind [[sim:ok;words=60]]").await;
    assert_eq!(bench.poll(&id).await["status"], "queued");
    assert!(bench.sim.advance(Duration::from_millis(299)));
    assert_eq!(bench.poll(&id).await["status"], "queued");
    bench.sim.advance(Duration::from_millis(1));
    assert_eq!(bench.poll(&id).await["status"], "in_progress");
    let moved = bench.post("/__sim/advance", &json!({"ms": 6_999})).await.unwrap();
    assert_eq!(moved.status(), 204);
    assert_eq!(bench.poll(&id).await["status"], "in_progress");
    bench.sim.advance(Duration::from_millis(1));
    assert_eq!(bench.poll(&id).await["status"], "completed");
}

#[tokio::test]
async fn streams_and_waiting_answers_follow_the_virtual_clock() {
    let bench = still().await;
    let mut stream = bench.submit_stream("wind [[sim:ok;words=60]]").await;
    assert_eq!(read(&mut stream, 1).await.events.len(), 1);
    bench.sim.advance(Duration::from_secs(1_000));
    assert_eq!(read_all(stream).await.last()["type"], "response.completed");
    let body = json!({"query": "wind [[sim:ok;delay_ms=60000]]"});
    let searching = bench.post("/search", &body);
    let moving = async {
        bench.seen(2).await;
        bench.sim.advance(Duration::from_secs(60));
    };
    let (found, ()) =
        tokio::time::timeout(PATIENCE, async { tokio::join!(searching, moving) }).await.unwrap();
    assert_eq!(found.unwrap().status(), 200);
}

#[tokio::test]
async fn a_real_clock_cannot_be_advanced() {
    let bench = Bench::new().await;
    assert!(!bench.sim.advance(Duration::from_secs(1)));
    let refused = bench.post("/__sim/advance", &json!({"ms": 1})).await.unwrap();
    assert_eq!(refusal(refused).await.0, 400);
}

#[tokio::test]
async fn a_rate_limit_refuses_fast_requests_and_reports_the_rest() {
    let bench = still().await;
    let question = "wind [[sim:ratelimit;rpm=60;burst=2;retry_after|stuck]]";
    for remaining in ["1", "0"] {
        let taken = bench.submit(question).await;
        assert_eq!(taken.status(), 200);
        assert_eq!(taken.headers()["x-ratelimit-limit"], "60");
        assert_eq!(taken.headers()["x-ratelimit-remaining"], remaining);
    }
    for response in [
        bench.submit(question).await,
        bench.post("/v1/async/sonar", &request(question)).await.unwrap(),
        bench.post("/search", &json!({"query": question})).await.unwrap(),
    ] {
        assert_eq!(response.headers()["retry-after"], "1");
        assert_eq!(response.headers()["x-ratelimit-remaining"], "0");
        assert_eq!(refusal(response).await.0, 429);
    }
    bench.sim.advance(Duration::from_secs(1));
    assert_eq!(bench.submit(question).await.status(), 200);
    assert_eq!(bench.submit(question).await.status(), 429);
    assert_eq!(bench.sim.stats().submits, 3);
}

#[tokio::test]
async fn a_rate_limit_may_count_polls_too() {
    let bench = still().await;
    let id = bench.submitted("wind [[sim:ratelimit;rpm=2;on=any|stuck]]").await;
    let path = format!("/v1/agent/{id}");
    assert_eq!(bench.get(&path).await.status(), 200);
    let refused = bench.get(&path).await;
    assert_eq!(refused.headers().get("retry-after"), None, "none was ever recorded");
    assert_eq!(refusal(refused).await.1, "rate_limit_exceeded");
    bench.sim.advance(Duration::from_secs(30));
    assert_eq!(bench.get(&path).await.status(), 200);
}

#[tokio::test]
async fn a_finished_run_vanishes_after_its_retention() {
    let bench = still().await;
    let question = "wind [[sim:retention;ms=5000;delay_ms=1000]]";
    let run = format!("/v1/agent/{}", bench.submitted(question).await);
    let job = job(&bench, question).await;
    bench.sim.advance(Duration::from_millis(5_999));
    assert_eq!(status(&bench, &run).await, "completed");
    assert_eq!(status(&bench, &job).await, "COMPLETED");
    bench.sim.advance(Duration::from_millis(1));
    assert_eq!(status(&bench, &run).await, "404");
    assert_eq!(status(&bench, &job).await, "404");
}

#[tokio::test]
async fn some_polls_do_not_find_a_run_and_then_they_do() {
    let bench = live().await;
    let question = "wind [[sim:flap404;times=2;delay_ms=0]]";
    let run = format!("/v1/agent/{}", bench.submitted(question).await);
    let job = job(&bench, question).await;
    for (path, end) in [(run, "completed"), (job, "COMPLETED")] {
        let seen = [status(&bench, &path).await, status(&bench, &path).await];
        assert_eq!(seen, ["404", "404"]);
        assert_eq!(status(&bench, &path).await, end);
    }
}

#[tokio::test]
async fn a_run_may_be_lost_after_some_polls() {
    let bench = live().await;
    let question = "wind [[sim:lost;after=1|stuck;delay_ms=0]]";
    let run = format!("/v1/agent/{}", bench.submitted(question).await);
    let job = job(&bench, question).await;
    for (path, first) in [(run, "in_progress"), (job, "IN_PROGRESS")] {
        assert_eq!(status(&bench, &path).await, first);
        assert_eq!(status(&bench, &path).await, "404");
        assert_eq!(status(&bench, &path).await, "404");
    }
}

#[tokio::test]
async fn polls_may_lag_behind_the_end_or_revoke_it() {
    let bench = live().await;
    let question = "wind [[sim:stale;polls=2;delay_ms=0]]";
    let run = format!("/v1/agent/{}", bench.submitted(question).await);
    for expected in ["in_progress", "in_progress", "completed", "completed"] {
        assert_eq!(status(&bench, &run).await, expected);
    }
    let job = job(&bench, "wind [[sim:stale;polls=2;backwards;delay_ms=0]]").await;
    for expected in ["COMPLETED", "IN_PROGRESS", "IN_PROGRESS", "COMPLETED"] {
        assert_eq!(status(&bench, &job).await, expected);
    }
}

#[tokio::test]
async fn a_submit_without_credits_is_refused_before_anything_is_bought() {
    let bench = live().await;
    for (clause, status) in [("quota", 401), ("quota;status=402", 402)] {
        let question = format!("wind [[sim:{clause}]]");
        for response in [
            bench.submit(&question).await,
            bench.post("/v1/async/sonar", &request(&question)).await.unwrap(),
            bench.post("/search", &json!({"query": question})).await.unwrap(),
        ] {
            let (found, kind, _) = refusal(response).await;
            assert_eq!((found, kind.as_str()), (status, "insufficient_quota"));
        }
    }
    assert_eq!((bench.sim.stats().submits, bench.sim.stats().spent_nanos), (0, 0));
}

#[tokio::test]
async fn a_slow_cancel_takes_its_time() {
    let bench = still().await;
    let id = bench.submitted("wind [[sim:cancel;mode=slow;ms=3000|stuck;delay_ms=0]]").await;
    assert_eq!(bench.cancel(&id).await.status(), 200);
    bench.sim.advance(Duration::from_millis(2_999));
    assert_eq!(bench.poll(&id).await["status"], "in_progress");
    bench.sim.advance(Duration::from_millis(1));
    assert_eq!(bench.poll(&id).await["status"], "cancelled");
}

#[tokio::test]
async fn a_cancel_may_be_refused_although_the_run_continues() {
    let bench = Bench::new().await;
    for (mode, after) in [("terminal400", "in_progress"), ("unknown400", "404")] {
        let question = format!("wind [[sim:cancel;mode={mode}|stuck;delay_ms=0]]");
        let id = bench.submitted(&question).await;
        let path = format!("/v1/agent/{id}");
        assert_eq!(status(&bench, &path).await, "in_progress");
        let (code, _, message) = refusal(bench.cancel(&id).await).await;
        assert_eq!(
            (code, message.as_str()),
            (400, "the run is already terminal and cannot be cancelled")
        );
        assert_eq!(status(&bench, &path).await, after);
    }
}

#[tokio::test]
async fn a_sonar_job_returns_its_scripted_errors() {
    let bench = live().await;
    let question = "wind [[sim:503x1|http;on=poll;status=502;body=html;times=1|ok;delay_ms=0]]";
    let refused = bench.post("/v1/async/sonar", &request(question)).await.unwrap();
    assert_eq!(refused.status(), 503);
    let job = job(&bench, question).await;
    assert_eq!(status(&bench, &job).await, "502");
    assert_eq!(status(&bench, &job).await, "COMPLETED");
    let nameless = bench.post("/v1/async/sonar", &request("sun [[sim:no_id]]")).await.unwrap();
    assert_eq!(nameless.json::<Value>().await.unwrap().get("id"), None);
    let stuck = self::job(&bench, "rain [[sim:stuck;delay_ms=0]]").await;
    assert_eq!(status(&bench, &stuck).await, "IN_PROGRESS");
}
