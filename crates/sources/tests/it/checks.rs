//! Whole checks over loopback (J1, J7): reports of all kinds, pages of all kinds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast_sources::{
    Check, CitationCheck, ClaimVerdict, FetchOptions, Fetcher, Lookup, Reason, Report,
    SourceReaders, SourceVerdict,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;

/// Serves pages by path, after 200 ms if the path begins with `/slow`; counts requests.
async fn serve(
    page: impl Fn(&str) -> (u16, Vec<u8>) + Send + Sync + 'static,
) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (page, count) = (Arc::new(page), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (page, counted) = (Arc::clone(&page), Arc::clone(&counted));
            tokio::spawn(async move {
                let mut head = vec![0; 8192];
                let length = stream.read(&mut head).await.unwrap_or(0);
                let path = String::from_utf8_lossy(&head[..length]);
                let path = path.split(' ').nth(1).unwrap_or("/").to_owned();
                counted.fetch_add(1, Ordering::SeqCst);
                if path.starts_with("/slow") {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                let (status, body) = page(&path);
                let head = format!(
                    "HTTP/1.1 {status} X\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(&body).await;
            });
        }
    });
    (port, count)
}

fn readers() -> SourceReaders {
    SourceReaders { fetcher: Arc::new(fetcher()), may_fetch: true, pdf: None, local: None }
}

async fn check(markdown: &str) -> CitationCheck {
    let mut check = Check::new(Report::parse(markdown));
    check.run(readers(), Arc::new(()), |_, _| {}).await;
    check.finish("2026-01-01T00:00:00.000Z".to_owned())
}

fn fetcher() -> Fetcher {
    let lookup: Lookup =
        Arc::new(|_| Box::pin(async { Ok(vec![std::net::Ipv4Addr::LOCALHOST.into()]) }));
    let options =
        FetchOptions { allow_private: true, lookup: Some(lookup), ..FetchOptions::default() };
    Fetcher::new(options).unwrap()
}

/// J1, J7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_sources_are_each_fetched_once_and_judged() {
    let (port, count) = serve(|path| {
        let number: u32 = path.trim_start_matches('/').parse().unwrap_or(0);
        (
            200,
            format!("<title>Page</title><p>The tower is {} m high.</p>", number + 100).into_bytes(),
        )
    })
    .await;
    let mut report = String::new();
    for number in 1..=500 {
        report.push_str(&format!("The tower is {} m high [{number}].\n\n", number + 100));
    }
    for number in 1..=500 {
        report
            .push_str(&format!("[{number}]: http://host{}.example:{port}/{number}\n", number % 7));
    }
    // A second number for the same address costs no second request.
    report.push_str(&format!("[501]: http://host1.example:{port}/1#part\n"));
    let done = check(&report).await;
    assert_eq!((done.totals.supported, done.sources.len(), done.complete), (500, 501, true));
    assert_eq!(count.load(Ordering::SeqCst), 500);
}

/// J5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_slow_sources_take_less_than_five_seconds() {
    let (port, _) = serve(|_| (200, b"<p>The tower is 300 m high.</p>".to_vec())).await;
    let report: String = (0..40)
        .map(|n| {
            format!("The tower is 300 m high (http://host{}.example:{port}/slow{n}).\n\n", n % 10)
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(check(&report).await.totals.supported, 40);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// J7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_pages_give_honest_verdicts() {
    let (port, _) = serve(|path| match path {
        "/gone" => (410, Vec::new()),
        "/members" => (403, Vec::new()),
        "/error" => (500, Vec::new()),
        "/shell" => (200, b"<div id=app></div><script src=x></script>".to_vec()),
        "/nul" => (200, b"<p>The tower\0 is \xff\xfe 300 m high.</p>".to_vec()),
        "/picture" => (200, vec![0; 100]),
        "/empty" => (200, Vec::new()),
        "/deep" => (200, "<div><b>".repeat(100_000).into_bytes()),
        _ => (200, b"<p>The tower is 300 m high.</p>".to_vec()),
    })
    .await;
    let paths = ["gone", "members", "error", "shell", "nul", "empty", "deep", "good"];
    let report: String = paths
        .iter()
        .map(|path| {
            format!("The tower is 300 m high ([page](http://h.example:{port}/{path})).\n\n")
        })
        .collect();
    let done = check(&report).await;
    let seen: Vec<_> = done.sources.iter().map(|source| source.verdict).collect();
    use SourceVerdict::*;
    assert_eq!(seen, [Dead, Blocked, Unreachable, Ok, Ok, Unreadable, Unreadable, Ok]);
    let seen: Vec<_> = done.claims.iter().map(|claim| (claim.verdict, claim.reason)).collect();
    let unchecked = |reason| (ClaimVerdict::Unchecked, Some(reason));
    let supported = (ClaimVerdict::Supported, None);
    let expected = [
        unchecked(Reason::Dead),
        unchecked(Reason::Blocked),
        unchecked(Reason::Unreachable),
        unchecked(Reason::ScriptShell),
        supported,
        unchecked(Reason::Unreadable),
        unchecked(Reason::Unreadable),
        supported,
    ];
    assert_eq!(seen, expected);
}

/// J1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_goes_on_with_the_steps_that_were_stored() {
    let (port, count) = serve(|_| (200, b"<p>The tower is 300 m high.</p>".to_vec())).await;
    let report: String = (0..10)
        .map(|n| format!("The tower is 300 m high (http://h{n}.example:{port}/).\n\n"))
        .collect();
    let mut first = Check::new(Report::parse(&report));
    let mut stored = Vec::new();
    first
        .run(readers(), Arc::new(()), |step, _| stored.push(serde_json::to_string(step).unwrap()))
        .await;
    let mut second = Check::new(Report::parse(&report));
    for step in &stored[..6] {
        second.record(serde_json::from_str(step).unwrap());
    }
    assert_eq!(second.pending().len(), 4);
    second.run(readers(), Arc::new(()), |_, _| {}).await;
    assert_eq!(count.load(Ordering::SeqCst), 14);
    assert_eq!(first.finish(String::new()), second.finish(String::new()));
}
