//! Every fault at every call: what it is called, and how often something was bought (B9, B9a).

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast_core::{BeginError, Provider, Trouble};
use tokio::net::TcpListener;

use crate::bench::{PATIENCE, SOON, agent, answered, ask, begin, follow, not_begun, sonar};
use crate::server::{Reply, Server, Then, raw, reply, silence};

const ENVELOPE: &str = r#"{"error":{"message":"m","type":"t","code":0}}"#;
const HTML: &str = "<html>an edge speaks</html>";

/// What a submit that met a fault is called.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Called {
    Refused,
    Unknown,
}

fn with_wait(status: u16, body: &str) -> Reply {
    let head = format!("retry-after: 7\r\ncontent-length: {}", body.len());
    raw(status, &head, body.as_bytes(), Then::Close)
}

fn broken() -> Reply {
    raw(200, "content-type: application/json\r\ncontent-length: 1000", b"{\"id\":", Then::Close)
}

/// The table of submits: fault, what it is called, of which trouble.
fn submits() -> Vec<(&'static str, Reply, Called, Trouble)> {
    use Called::{Refused, Unknown};
    let wait = Some(Duration::from_secs(7));
    let busy = || Trouble::Unavailable { retry_after: None };
    vec![
        ("400", reply(400, ENVELOPE), Refused, Trouble::Rejected),
        ("400 html", reply(400, HTML), Refused, Trouble::Rejected),
        ("401", reply(401, ENVELOPE), Refused, Trouble::Unauthorized),
        ("401 html", reply(401, HTML), Refused, Trouble::Unauthorized),
        ("402", reply(402, HTML), Refused, Trouble::QuotaExhausted),
        ("403", reply(403, HTML), Refused, Trouble::Unauthorized),
        ("404", reply(404, ENVELOPE), Refused, Trouble::Rejected),
        ("408", reply(408, ""), Unknown, busy()),
        ("409", reply(409, ""), Unknown, busy()),
        ("422", reply(422, r#"{"detail":[]}"#), Refused, Trouble::Rejected),
        ("429", with_wait(429, ""), Refused, Trouble::RateLimited { retry_after: wait }),
        ("500 json", reply(500, ENVELOPE), Refused, busy()),
        ("500 html", reply(500, HTML), Unknown, busy()),
        ("503 json", with_wait(503, ENVELOPE), Refused, Trouble::Unavailable { retry_after: wait }),
        ("503", reply(503, ""), Unknown, busy()),
        ("524", reply(524, HTML), Unknown, busy()),
        ("silence", silence(), Unknown, Trouble::TimedOut),
        ("broken body", broken(), Unknown, Trouble::Unreachable),
    ]
}

/// B9a at every call that costs money. A 2xx of nonsense has its tests beside each of them.
#[tokio::test]
async fn b9a_every_fault_of_a_submit_has_its_name_and_is_sent_once() {
    let faults = submits();
    let replies: Vec<Reply> = faults.iter().map(|(_, reply, _, _)| reply.clone()).collect();
    let server = Server::serve(move |_, nth| replies[nth % replies.len()].clone()).await;
    let providers = |timeout| -> [Box<dyn Provider>; 2] {
        [Box::new(sonar(&server.url, timeout)), Box::new(agent(&server.url, timeout))]
    };
    let (patient, hasty) = (providers(PATIENCE), providers(SOON));
    let asks =
        [(0, "research"), (0, "search"), (0, "ask"), (0, "reason"), (0, "results"), (1, "results")];
    let mut sent = 0;
    for (dialect, kind) in asks {
        for (fault, _, called, trouble) in &faults {
            let provider = if *fault == "silence" { &hasty[dialect] } else { &patient[dialect] };
            let (seen, error) = match not_begun(&**provider, &ask(kind)).await {
                BeginError::Refused(error) => (Called::Refused, error),
                BeginError::Unknown(error) => (Called::Unknown, error),
                BeginError::NotSent(error) => panic!("{kind} {fault}: {error:?}"),
            };
            assert_eq!((seen, &error.trouble), (*called, trouble), "{kind} {fault}: {error:?}");
            sent += 1;
            assert_eq!(server.submits(), sent, "{kind} {fault}");
        }
    }
}

/// B9a: what never left may be sent again.
#[tokio::test]
async fn b9a_a_refused_connection_means_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let sonar = sonar(&url, PATIENCE);
    for kind in ["research", "ask", "results"] {
        let error = not_begun(&sonar, &ask(kind)).await;
        let BeginError::NotSent(error) = error else { panic!("{kind}: {error:?}") };
        assert_eq!(error.trouble, Trouble::Unreachable);
    }
}

const CREATED: &str = r#"{"id":"job-1","status":"CREATED"}"#;
const DONE: &str = r#"{"id":"job-1","status":"COMPLETED","response":{"choices":[{"message":{"content":"done"}}]}}"#;

/// A5: trouble in passing keeps the series; a refused key or request ends the run at once.
#[tokio::test]
async fn a5_every_fault_of_a_check_passes_or_ends_the_run() {
    let checks: Vec<(&str, Reply, Option<Trouble>)> = vec![
        ("400", reply(400, ENVELOPE), Some(Trouble::Rejected)),
        ("401", reply(401, ENVELOPE), Some(Trouble::Unauthorized)),
        ("403", reply(403, HTML), Some(Trouble::Unauthorized)),
        ("404", reply(404, ENVELOPE), None),
        ("408", reply(408, ""), None),
        ("409", reply(409, ENVELOPE), None),
        ("410", reply(410, ""), Some(Trouble::Retired)),
        ("422", reply(422, r#"{"detail":[]}"#), Some(Trouble::Rejected)),
        ("429", with_wait(429, ""), None),
        ("500 json", reply(500, ENVELOPE), None),
        ("500 html", reply(500, HTML), None),
        ("503", reply(503, ""), None),
        ("524", reply(524, HTML), None),
        ("silence", silence(), None),
        ("broken body", broken(), None),
        ("nonsense", reply(200, HTML), None),
        ("another object", reply(200, r#"{"hello":1}"#), None),
        ("an unknown status", reply(200, r#"{"status":"MEDITATING"}"#), None),
    ];
    let replies: Vec<Reply> = checks.iter().map(|(_, reply, _)| reply.clone()).collect();
    // Each run meets its fault three times, then it is done.
    let checked = Mutex::new(vec![0; checks.len()]);
    let submitted = AtomicUsize::new(0);
    let server = Server::serve(move |line, _| {
        let Some((_, run)) = line.split_once("/run-") else {
            let run = submitted.fetch_add(1, Ordering::SeqCst);
            return reply(200, &format!(r#"{{"id":"run-{run}","status":"CREATED"}}"#));
        };
        let run: usize = run.parse().unwrap();
        let mut checked = checked.lock().unwrap();
        checked[run] += 1;
        if checked[run] <= 3 { replies[run].clone() } else { reply(200, DONE) }
    })
    .await;
    let (patient, hasty) = (sonar(&server.url, PATIENCE), sonar(&server.url, SOON));
    let mut before = 0;
    for (nth, (fault, _, ends)) in checks.iter().enumerate() {
        let sonar = if *fault == "silence" { &hasty } else { &patient };
        let followed = answered(sonar, &ask("research")).await;
        let requests = server.lines().len() - std::mem::replace(&mut before, server.lines().len());
        match ends {
            Some(trouble) => {
                assert_eq!(&followed.error().trouble, trouble, "{fault}");
                assert!(!trouble.ends_the_run(), "{fault}: it may still run");
                assert_eq!(requests, 2, "{fault}");
            }
            None => {
                assert_eq!(followed.text(), "done", "{fault}");
                assert_eq!(requests, 5, "{fault}");
            }
        }
        assert_eq!(server.submits(), nth + 1, "{fault}");
    }
}

/// A5: a server that cannot be reached for a while.
#[tokio::test]
async fn a5_a_check_without_a_connection_is_made_again() {
    let server = Server::always(reply(200, CREATED)).await;
    let run = begin(&sonar(&server.url, PATIENCE), &ask("research")).await.remote();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut run = sonar(&url, PATIENCE).resume(&run).await.unwrap();
    run.next().await.unwrap();
    let checks = tokio::time::timeout(SOON, run.next()).await;
    assert!(checks.is_err(), "nobody answers, and it goes on asking: {checks:?}");
}

/// The vendor's word for it, in each of the ways it may come.
#[tokio::test]
async fn a_retired_endpoint_says_what_to_set() {
    let error = |kind: &str, code: &str| {
        format!(r#"{{"error":{{"message":"gone","type":"{kind}","code":{code}}}}}"#)
    };
    let answers = [
        (403, error("chat_completions_not_available", "403")),
        (410, error("chat_completions_not_available", "410")),
        (410, String::new()),
        (404, error("model_not_found", "404")),
        (400, error("invalid_request_error", "\"model_not_found\"")),
        (400, error("invalid_model", "400")),
    ];
    let kinds = ["research", "search", "ask", "reason"];
    let said = answers.clone();
    let server = Server::serve(move |_, nth| {
        let (status, body) = &said[nth / kinds.len()];
        reply(*status, body)
    })
    .await;
    let retired = sonar(&server.url, PATIENCE);
    for (status, body) in answers {
        for kind in kinds {
            let error = not_begun(&retired, &ask(kind)).await;
            let BeginError::Refused(error) = error else { panic!("{status} {body}: {error:?}") };
            assert_eq!(error.trouble, Trouble::Retired, "{status} {body}");
            assert!(error.sentence.contains("PERPLEXITY_API=agent"), "{error}");
            assert!(!error.sentence.contains("gone"), "{error}");
        }
    }
    let server = Server::serve(move |_, nth| match nth {
        0 => reply(200, CREATED),
        _ => reply(403, r#"{"error":{"type":"chat_completions_not_available"}}"#),
    })
    .await;
    let mut run = begin(&sonar(&server.url, PATIENCE), &ask("research")).await;
    assert_eq!(follow(&mut *run).await.error().trouble, Trouble::Retired);
}
