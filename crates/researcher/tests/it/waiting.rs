//! Servers that cannot be reached: the user sees it at once, and the waits of a run have an end.

use std::net::SocketAddr;
use std::time::Duration;

use outlast_core::ProviderErrorKind;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::bench::Bench;

/// Returns an address on which nothing listens.
async fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// Forwards connections from an address to the simulator.
async fn forward(from: SocketAddr, to: String) {
    let listener = TcpListener::bind(from).await.unwrap();
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        let to = to.clone();
        tokio::spawn(async move {
            let mut far = TcpStream::connect(to).await.unwrap();
            drop(tokio::io::copy_bidirectional(&mut near, &mut far).await);
        });
    }
}

/// K10: a model server that cannot be reached is reported at once, and the run gives up with the next step.
#[tokio::test(flavor = "multi_thread")]
async fn k10_a_model_server_that_does_not_answer_is_reported_at_once() {
    let mut bench = Bench::new("-", "-").await;
    let address = free_address().await;
    bench.model_url = Some(format!("http://user:heliotrope@{address}/v1?key=heliotrope"));
    bench.patience = Duration::from_secs(2);
    let began = Instant::now();
    let (ended, messages) = bench.try_finish().await;
    let error = ended.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Unreachable, "{error:?}");
    let expected = format!("the model server at http://{address}/v1 does not answer");
    assert!(error.sentence.starts_with(&expected), "{error:?}");
    assert!(error.sentence.contains("(connection refused); start it, or correct"), "{error:?}");
    assert!(!format!("{error:?} {messages:?}").contains("heliotrope"), "{error:?} {messages:?}");
    let first = format!(
        "The model server at http://{address}/v1 does not answer (connection refused); trying again in 1 s"
    );
    assert_eq!(messages.first(), Some(&first), "{messages:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(bench.steps().await.is_empty(), "nothing was asked");
}

/// K5, K10: a run waits for a server that is being started, and reads the window from it.
#[tokio::test(flavor = "multi_thread")]
async fn k10_a_run_goes_on_when_the_model_server_answers() {
    let mut bench = Bench::new("server=llama,window=4096", "-").await;
    let address = free_address().await;
    bench.model_url = Some(format!("http://{address}/llm/{}/v1", bench.model_lane));
    let simulator = bench.simulator.url().trim_start_matches("http://").to_owned();
    let forwarded = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        forward(address, simulator).await;
    });
    let (ended, messages) = bench.try_finish().await;
    forwarded.abort();
    assert!(ended.is_ok(), "{ended:?}");
    let waited = messages.iter().filter(|message| message.contains("trying again in 1 s"));
    assert_eq!(waited.count(), 1, "{messages:?}");
    assert_eq!(bench.simulator.calls().lanes[&bench.model_lane].over_window, 0);
}

/// K10: the same for the search service, in the middle of a run.
#[tokio::test(flavor = "multi_thread")]
async fn k10_a_search_service_that_does_not_answer_is_reported() {
    let mut bench = Bench::new("-", "-").await;
    let address = free_address().await;
    bench.search_url = Some(format!("http://{address}"));
    bench.patience = Duration::from_secs(1);
    let (ended, messages) = bench.try_finish().await;
    let expected = format!("he search service at http://{address} does not answer");
    assert!(ended.unwrap_err().sentence.contains(&expected));
    assert!(messages.iter().any(|message| message.contains(&expected)), "{messages:?}");
}

/// K5, K11: settings with which no run can succeed end it at once, before anything is bought, with one sentence and the
/// next step.
#[tokio::test(flavor = "multi_thread")]
async fn k11_a_setting_that_cannot_work_ends_the_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("server=llama,window=1024", false, "the window of scripted has 1024 tokens"),
        ("key", false, "the model server refused the key; check researcher.api_key"),
        ("-", true, "the folders of the library have no text that can be read"),
    ];
    for (lane, is_library, expected) in cases {
        let mut bench = Bench::new(lane, "-").await;
        bench.library = is_library.then(|| folder.path().to_owned());
        let error = bench.try_finish().await.0.unwrap_err();
        assert!(error.sentence.starts_with(expected), "{lane}: {error:?}");
        assert!(error.kind.is_permanent(), "{lane}: {error:?}");
        let calls = bench.simulator.calls();
        let answers =
            calls.lanes.get(lane).map_or(0, |lane| lane.model.values().map(|it| it.answers).sum());
        assert_eq!(answers, 0, "{lane}: nothing is bought");
    }
}
