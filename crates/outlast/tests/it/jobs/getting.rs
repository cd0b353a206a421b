//! Reading a job: the long poll, the one shape, invalid ids.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Shop, ended, ran, start};
use crate::support::assert_refused;

/// E3: only the end of the job ends the wait early, and it does at once.
#[tokio::test]
async fn e3_a_long_poll_returns_when_the_job_ends() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "wait", "").await;
    let began = Instant::now();
    let asked = json!({ "name": "get_job", "arguments": { "job_id": id, "wait_seconds": 300 } });
    let call = server.send("tools/call", asked).await;
    crate::support::eventually("the command runs", || shop.file("begun").exists()).await;
    shop.go();
    let got = server.answer(call).await.unwrap();
    assert_eq!(got["result"]["structuredContent"]["status"], "completed", "{got}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

/// E3: a finished job is answered at once, regardless of the wait.
#[tokio::test]
async fn e3_a_finished_job_is_answered_at_once() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "echo", "hi").await;
    ended(&mut server, &id).await;
    let began = Instant::now();
    let got = server.structured("get_job", json!({ "job_id": id, "wait_seconds": 300 })).await;
    assert_eq!((&got["status"], &got["done"]), (&json!("completed"), &json!(true)));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// E3: the wait of the call, otherwise the configured one; half a second short; zero means at once.
#[tokio::test]
async fn e3_the_wait_can_be_configured_and_ends_half_a_second_short() {
    let shop = Shop::new().await;
    let mut server = shop.serve_with(&["--tools", "jobs", "--poll-timeout", "2"]).await;
    let listed = server.request("tools/list", json!({})).await.to_string();
    assert!(listed.contains("Waits up to 2 s"), "texts name the wait in force: {listed}");
    let id = start(&mut server, "wait", "").await;
    let cases = [
        (json!({ "job_id": id }), 1.5, 2.0),
        (json!({ "job_id": id, "wait_seconds": 0 }), 0.0, 0.5),
        (json!({ "job_id": id, "wait_seconds": -3 }), 0.5, 1.0),
    ];
    for (arguments, least, most) in cases {
        let began = Instant::now();
        let got = server.structured("get_job", arguments.clone()).await;
        let took = began.elapsed().as_secs_f64();
        assert!((least..most + 1.0).contains(&took), "{arguments}: {took}");
        assert_eq!(got["done"], false);
        let next = got["next_instruction_for_model"].as_str().unwrap();
        assert!(
            next.starts_with("Call get_job with this job_id") && next.contains("2 s"),
            "{next}"
        );
    }
    shop.go();
    ended(&mut server, &id).await;
    let bad = server.call("get_job", json!({ "job_id": id, "wait_seconds": 0.5 })).await;
    assert_refused(&bad, "VALIDATION_ERROR", false);
}

/// E3: numbers are brought into bounds with one warning, anything else is refused.
#[tokio::test]
async fn e3_a_configured_wait_out_of_bounds_is_clamped_with_one_warning() {
    let mut shop = Shop::new().await;
    for (given, used) in [("0", "1"), ("301", "300"), ("-4", "1"), ("1e9", "300")] {
        let mut server = shop.serve_with(&["--tools", "jobs", "--poll-timeout", given]).await;
        let listed = server.request("tools/list", json!({})).await.to_string();
        assert!(listed.contains(&format!("Waits up to {used} s")), "{given}");
        server.close_input();
        let (_, log) = server.ended().await;
        assert_eq!(log.matches(&format!("--poll-timeout = `{given}`")).count(), 1, "{log}");
    }
    for bad in ["soon", "NaN"] {
        let said = shop.refused(&["--tools", "jobs", "--poll-timeout", bad]).await;
        assert!(said.contains("--poll-timeout") && said.contains("from 1 to 300"), "{said}");
    }
    shop.world.set("OUTLAST_POLL_TIMEOUT", "7");
    let mut server = shop.serve().await;
    let listed = server.request("tools/list", json!({})).await.to_string();
    assert!(listed.contains("Waits up to 7 s"));
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// E4: one shape for start, get and cancel, in every state.
#[tokio::test]
async fn e4_the_full_shape_at_every_station() {
    let shop = Shop::new().await;
    let mut server = shop.serve_with(&["--tools", "jobs", "--concurrency", "1"]).await;
    let running = start(&mut server, "wait", "").await;
    crate::support::eventually("the command runs", || shop.file("begun").exists()).await;
    let queued = server.structured("start_job", json!({ "workflow": "echo" })).await;
    let all = [
        "done",
        "error",
        "job_id",
        "next_instruction_for_model",
        "polling",
        "progress",
        "result",
        "status",
        "user_message",
    ];
    assert_eq!(keys(&queued), all);
    assert_eq!(queued["status"], "queued");
    assert_eq!(queued["done"], false);
    assert_eq!(
        queued["progress"],
        json!({ "percent": 0, "step": "queued", "message": "Job accepted" })
    );
    assert_eq!(queued["polling"]["recommended_next_action"], "get_job");
    assert!(queued["polling"]["recommended_delay_seconds"].is_u64());
    assert_eq!((&queued["result"], &queued["error"]), (&Value::Null, &Value::Null));
    assert_eq!(queued["user_message"], "The job has started.");

    let got = server.structured("get_job", json!({ "job_id": running, "wait_seconds": 0 })).await;
    assert_eq!(keys(&got), all);
    assert_eq!(
        got["progress"],
        json!({ "percent": null, "step": "running", "message": "Job running" })
    );
    let next = got["next_instruction_for_model"].as_str().unwrap();
    assert!(next.starts_with("Call get_job with this job_id"), "{next}");

    let cancelled = server.structured("cancel_job", json!({ "job_id": running })).await;
    assert_eq!(keys(&cancelled), all);
    assert_eq!((&cancelled["status"], &cancelled["done"]), (&json!("cancelled"), &json!(true)));
    assert_eq!(cancelled["error"]["code"], "CANCELLED");
    assert_eq!(cancelled["error"]["retryable"], false);
    assert_eq!(
        cancelled["polling"],
        json!({ "recommended_next_action": "none", "recommended_delay_seconds": 0 })
    );
    let again = server.structured("cancel_job", json!({ "job_id": running })).await;
    assert_eq!(again["status"], "cancelled", "cancelling twice is no error");

    let done = ended(&mut server, queued["job_id"].as_str().unwrap()).await;
    assert_eq!(keys(&done), all);
    assert_eq!(
        done["progress"],
        json!({ "percent": 100, "step": "completed", "message": "Job completed" })
    );
    let failed = ran(&mut server, "fail", "").await;
    assert_eq!(keys(&failed), all);
    assert_eq!(failed["progress"]["percent"], Value::Null);
    assert_eq!(keys(&failed["error"]), ["code", "message", "retryable"]);
    let late = server.structured("cancel_job", json!({ "job_id": done["job_id"] })).await;
    assert_eq!(late["status"], "completed", "a finished job keeps its result");
}

/// E4, E7: invalid ids of every kind answer `expired` at once.
#[tokio::test]
async fn e7_unknown_odd_and_huge_ids_answer_expired_at_once() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let unknown = "0f8fad5bd9cb469fa16570867728950e";
    let huge = "x".repeat(1_000_000);
    let known = start(&mut server, "echo", "hi").await;
    ended(&mut server, &known).await;
    let odd = [
        unknown,
        "",
        "a",
        &known[..8],
        &known.to_uppercase(),
        "' OR 1=1 --",
        "../../etc/passwd",
        "\u{1F600}\u{0}",
        &huge,
    ];
    let mut shapes = Vec::new();
    for id in odd {
        for tool in ["get_job", "cancel_job"] {
            let began = Instant::now();
            let mut got = server.structured(tool, json!({ "job_id": id })).await;
            assert!(began.elapsed() < Duration::from_secs(5), "{tool} {:?}", began.elapsed());
            assert_eq!(
                (&got["status"], &got["done"]),
                (&json!("expired"), &json!(true)),
                "{id:.40}"
            );
            assert_eq!(got["error"]["code"], "JOB_EXPIRED");
            assert!(got["job_id"].as_str().unwrap().len() <= 256);
            got["job_id"] = Value::Null;
            shapes.push(got);
        }
    }
    shapes.dedup();
    assert_eq!(shapes.len(), 1, "they cannot be distinguished");
}

/// E7: another owner's id behaves like an unknown one.
#[tokio::test]
async fn e7_a_foreign_id_is_an_unknown_one() {
    let mut shop = Shop::new().await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "echo", "hi").await;
    ended(&mut server, &id).await;
    shop.world.set("OUTLAST_OWNER", "mallory");
    let mut stranger = shop.serve().await;
    for tool in ["get_job", "cancel_job"] {
        let got = stranger.structured(tool, json!({ "job_id": id })).await;
        assert_eq!(got["status"], "expired");
    }
    assert_eq!(stranger.structured("list_jobs", json!({})).await["jobs"], json!([]));
}

/// E7: one id space. This set finds a job of another set, and that set finds a job of this one.
#[tokio::test]
async fn e7_every_set_finds_any_job_of_the_owner() {
    let shop = Shop::new().await;
    let mut server = shop.serve_with(&["--async", "--tools", "research-jobs"]).await;
    let other = crate::support::start(&mut server, "ok;words=60;delay_ms=0").await;
    crate::support::finished(&mut server, &other).await;
    let got = server.structured("get_job", json!({ "job_id": other })).await;
    assert_eq!(got["status"], "completed");
    assert!(got["result"]["text"].is_string(), "{got}");
    let own = start(&mut server, "echo", "hi").await;
    let poll = crate::support::finished(&mut server, &own).await;
    assert_eq!((&poll["status"], &poll["response"]), (&json!("COMPLETED"), &json!("hi")));
}

/// E9: kept for the retention from its end, then like an id that never existed.
#[tokio::test]
async fn e9_a_finished_job_expires() {
    let mut shop = Shop::new().await;
    shop.world.set("OUTLAST_JOB_TTL_MS", "300");
    let mut server = shop.serve().await;
    let id = start(&mut server, "echo", "hi").await;
    let gone = async {
        loop {
            let got = server.structured("get_job", json!({ "job_id": id })).await;
            if got["status"] == "expired" {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("it expires");
}

/// E15: many callers poll the same job and each gets an answer, with its own id.
#[tokio::test]
async fn e15_concurrent_get_jobs_are_all_answered() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "wait", "").await;
    let mut calls = Vec::new();
    for _ in 0..50 {
        let asked = json!({ "name": "get_job", "arguments": { "job_id": id } });
        calls.push(server.send("tools/call", asked).await);
    }
    crate::support::eventually("the command runs", || shop.file("begun").exists()).await;
    shop.go();
    for call in calls {
        let got = server.answer(call).await.unwrap();
        let got = &got["result"]["structuredContent"];
        assert_eq!((&got["status"], &got["job_id"]), (&json!("completed"), &json!(id)));
    }
}
