//! M5: the audit file, and the trace of a request.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::http::client::{ANN, Served};
use crate::page::browser::Browser;
use crate::support::{CANCEL, START, World, eventually, finished, question, running, start};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Configures an audit file, and returns its path.
fn configure(world: &World) -> PathBuf {
    let folder = PathBuf::from(world.variable("HOME")).join(".config/outlast");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("audit.jsonl");
    let text = format!("[audit]\nfile = {:?}\n", file.to_str().unwrap());
    fs::write(folder.join("outlast.toml"), text).unwrap();
    file
}

fn entries(file: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn find(file: &PathBuf, event: &str, job: &str) -> Option<Value> {
    entries(file).into_iter().find(|entry| entry["event"] == event && entry["job"] == job)
}

/// M5: a line for each start, end and cancel, by whichever process it happened in, and nothing of question or report.
#[tokio::test]
async fn m5_starts_ends_and_cancels_are_recorded_without_texts() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_MAX_JOB_RETRIES", "0");
    let file = configure(&world);
    let mut server = world.serve().await;
    let succeeded = start(&mut server, "ok;words=80;delay_ms=0").await;
    let report = finished(&mut server, &succeeded).await["response"].as_str().unwrap().to_owned();
    let failed = start(&mut server, "fail;delay_ms=0").await;
    finished(&mut server, &failed).await;
    let cancelled = start(&mut server, "stuck").await;
    running(&world, &cancelled).await;
    server.structured(CANCEL, json!({ "jobId": cancelled })).await;
    eventually("three ends are recorded", || {
        find(&file, "end", &succeeded).is_some()
            && find(&file, "end", &failed).is_some()
            && find(&file, "cancel", &cancelled).is_some()
    })
    .await;
    for id in [&succeeded, &failed, &cancelled] {
        let started = find(&file, "start", id).unwrap();
        assert_eq!((&started["owner"], &started["tool"]), (&json!("local"), &json!(START)));
        assert!(started["time"].as_str().unwrap().ends_with('Z'), "{started}");
    }
    let end = find(&file, "end", &succeeded).unwrap();
    assert_eq!((&end["state"], &end["code"]), (&json!("succeeded"), &Value::Null));
    assert!(end["cost_usd"].as_f64().unwrap() > 0.0, "{end}");
    let end = find(&file, "end", &failed).unwrap();
    assert_eq!(end["state"], "failed");
    assert!(end["code"].is_string(), "{end}");
    let text = fs::read_to_string(&file).unwrap();
    let line = report.lines().find(|line| line.len() > 40).unwrap();
    assert!(!text.contains(line) && !text.contains("sky"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

/// M5: a refused call is recorded with its code; HTTP requests without a token and sign-ins with the address.
#[tokio::test]
async fn m5_refusals_and_sign_ins_are_recorded() {
    let mut world = World::new().await;
    let file = configure(&world);
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    ann.initialize().await;
    ann.ask("search_research", json!({ "query": "" }), json!({})).await.result().await;
    let browser = Browser::new(served.address);
    let wrong = browser.post("/ui/sign-in", &[("token", "wrong-0123456789abcdef")]).await;
    assert_eq!(wrong.status, 401);
    assert!(browser.post("/ui/sign-in", &[("token", ANN)]).await.cookie.is_some());
    assert_eq!(
        served.client("wrong-0123456789abcdef").send("GET /mcp?x=secret", &[], "").await.status,
        401
    );
    let is_there = |wanted: Value| {
        let wanted = wanted.as_object().unwrap().clone();
        move |entry: &Value| wanted.iter().all(|(key, value)| entry[key] == *value)
    };
    let expected = [
        json!({ "event": "refusal", "tool": "search_research", "code": "VALIDATION_ERROR", "owner": "ann" }),
        json!({ "event": "refusal", "path": "/ui/sign-in", "status": 401, "address": "127.0.0.1" }),
        json!({ "event": "sign_in", "owner": "ann", "address": "127.0.0.1" }),
        json!({ "event": "refusal", "path": "/mcp", "status": 401, "code": "UNAUTHORIZED" }),
    ];
    eventually("all are recorded", || {
        let entries = entries(&file);
        expected.iter().all(|wanted| entries.iter().any(is_there(wanted.clone())))
    })
    .await;
    let text = fs::read_to_string(&file).unwrap();
    for secret in [ANN, "wrong-0123456789abcdef", "secret"] {
        assert!(!text.contains(secret), "{text}");
    }
}

/// M5: refused requests cannot fill the disk: the others of a second are counted.
#[tokio::test]
async fn m5_a_flood_of_refusals_is_summed_up() {
    let mut world = World::new().await;
    let file = configure(&world);
    let served = Served::start(&mut world, &[]).await;
    for _ in 0..200 {
        let wrong = served.client("wrong-0123456789abcdef").send("GET /mcp", &[], "").await;
        assert!([401, 429].contains(&wrong.status));
    }
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    served.client("wrong-0123456789abcdef").send("GET /mcp", &[], "").await;
    let sum = || {
        let entries = entries(&file);
        let left_out: u64 =
            entries.iter().filter_map(|entry| entry["left_out_before"].as_u64()).sum();
        (entries.len() as u64, left_out)
    };
    eventually("every request is accounted for", || sum().0 + sum().1 == 201).await;
}

/// M5: a file that cannot be written, or must not be, stops nothing and is logged.
#[tokio::test]
async fn m5_a_file_that_cannot_be_written_stops_nothing() {
    for trouble in ["link", "readable", "directory", "missing", "pipe"] {
        let world = World::new().await;
        let file = configure(&world);
        let other = file.with_file_name("other");
        match trouble {
            "link" => {
                fs::write(&other, "").unwrap();
                symlink(&other, &file).unwrap();
            }
            "readable" => {
                fs::write(&file, "").unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            }
            "directory" => fs::create_dir(&file).unwrap(),
            "pipe" => {
                let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
                assert!(made.success());
            }
            _ => {
                let config = file.with_file_name("outlast.toml");
                fs::write(config, "[audit]\nfile = \"/nowhere/at/all/audit.jsonl\"\n").unwrap();
            }
        }
        let mut server = world.serve().await;
        let id = start(&mut server, "ok;words=40;delay_ms=0").await;
        assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED", "{trouble}");
        server.logged("the audit file cannot be written").await;
        if trouble == "link" {
            assert_eq!(
                fs::read_to_string(&other).unwrap(),
                "",
                "nothing is written through a link"
            );
        }
    }
}

/// M5: the trace of a request is stored with its job and recorded; a malformed one is ignored.
#[tokio::test]
async fn m5_the_trace_of_a_request_is_stored_with_its_job() {
    let world = World::new().await;
    let file = configure(&world);
    let mut server = world.serve().await;
    let mut traced = async |traceparent: &str, topic: &str| {
        let mut arguments = question("ok;words=40;delay_ms=0");
        arguments["messages"][0]["content"] =
            format!("{topic} [[sim:ok;words=40;delay_ms=0]]").into();
        let params = json!({ "name": START, "arguments": arguments, "_meta": { "traceparent": traceparent } });
        let answer = server.request("tools/call", params).await;
        answer["result"]["structuredContent"]["jobId"].as_str().unwrap().to_owned()
    };
    let id = traced(TRACE, "One").await;
    let other = traced("00-not-a-trace", "Two").await;
    eventually("both starts are recorded", || find(&file, "start", &other).is_some()).await;
    assert_eq!(find(&file, "start", &id).unwrap()["traceparent"], TRACE);
    assert_eq!(find(&file, "start", &other).unwrap()["traceparent"], Value::Null);
}
