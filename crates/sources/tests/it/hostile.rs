//! A hostile web on loopback (J5, J7): real sockets, scripted answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast_sources::{FetchError, FetchLimits, FetchOptions, FetchedPage, Fetcher, Lookup};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// A server that answers each path as its script says.
struct Web {
    port: u16,
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    head: Arc<std::sync::Mutex<String>>,
}

impl Web {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let web = Self {
            port: listener.local_addr().unwrap().port(),
            now: Arc::default(),
            most: Arc::default(),
            head: Arc::default(),
        };
        let (now, most, head) = (web.now.clone(), web.most.clone(), web.head.clone());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (now, most, head) = (now.clone(), most.clone(), head.clone());
                tokio::spawn(async move {
                    let mut request = vec![0; 8192];
                    let length = stream.read(&mut request).await.unwrap_or(0);
                    let text = String::from_utf8_lossy(&request[..length]).into_owned();
                    let path = text.split(' ').nth(1).unwrap_or("/").to_owned();
                    *head.lock().unwrap() = text;
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    // The client hangs up on most of these answers.
                    let _ = answer(&mut stream, &path).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        web
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    async fn fetch(&self, path: &str) -> Result<FetchedPage, FetchError> {
        fetcher().fetch(&self.url(path)).await
    }
}

const BEGIN: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";

async fn answer(stream: &mut TcpStream, path: &str) -> std::io::Result<()> {
    let page = |more: &str, body: &str| {
        format!("{BEGIN}{more}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    match path {
        "/gigabyte" => {
            stream
                .write_all(format!("{BEGIN}Content-Length: 1073741824\r\n\r\n").as_bytes())
                .await?;
            for _ in 0..16_384 {
                stream.write_all(&[b'x'; 65_536]).await?;
            }
            Ok(())
        }
        "/endless" => {
            stream.write_all(format!("{BEGIN}\r\n").as_bytes()).await?;
            loop {
                stream.write_all(&[b'x'; 65_536]).await?;
            }
        }
        "/drip" => {
            stream.write_all(format!("{BEGIN}Content-Length: 1000000\r\n\r\n").as_bytes()).await?;
            loop {
                stream.write_all(b"x").await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        "/silent" => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(())
        }
        "/headers" => {
            stream.write_all(BEGIN.as_bytes()).await?;
            loop {
                stream.write_all(format!("X-A: {}\r\n", "x".repeat(1_000)).as_bytes()).await?;
            }
        }
        "/long-headers" => {
            let more: String =
                (0..70).map(|n| format!("X-{n}: {}\r\n", "x".repeat(1_000))).collect();
            stream.write_all(page(&more, "late").as_bytes()).await
        }
        "/cut" => {
            stream.write_all(format!("{BEGIN}Content-Length: 100\r\n\r\nhalf").as_bytes()).await
        }
        "/slow-page" => {
            tokio::time::sleep(Duration::from_millis(200)).await;
            stream.write_all(page("", "page").as_bytes()).await
        }
        "/gone" => stream.write_all(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n").await,
        "/cookie" => {
            let answer = "HTTP/1.1 302 Found\r\nSet-Cookie: a=b\r\nLocation: /page?q=1\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer.as_bytes()).await
        }
        "/nonsense" => stream.write_all(b"\0\0\0 no http\r\n\r\n").await,
        "/chunks" => {
            stream
                .write_all(format!("{BEGIN}Transfer-Encoding: chunked\r\n\r\nzz\r\n").as_bytes())
                .await
        }
        "/gzip-noise" => {
            stream.write_all(page("Content-Encoding: gzip\r\n", "noise").as_bytes()).await
        }
        _ => stream.write_all(page("", "page").as_bytes()).await,
    }
}

fn fetcher() -> Fetcher {
    let limits = FetchLimits {
        headers: Duration::from_millis(500),
        source: Duration::from_millis(1_500),
        ..FetchLimits::default()
    };
    Fetcher::new(FetchOptions { allow_private: true, limits, ..FetchOptions::default() }).unwrap()
}

/// J5, J7
#[tokio::test]
async fn bodies_without_end_are_cut_at_the_limit() {
    let web = Web::start().await;
    for path in ["/gigabyte", "/endless"] {
        let page = web.fetch(path).await.unwrap();
        assert!(page.truncated && page.body.len() <= 5 << 20, "{path}: {}", page.body.len());
    }
    let cut = web.fetch("/cut").await.unwrap();
    assert_eq!((cut.body.as_slice(), cut.truncated), (b"half".as_slice(), true));
}

/// J5, J7
#[tokio::test]
async fn slow_and_broken_servers_are_left_in_time() {
    let web = Web::start().await;
    let begun = Instant::now();
    assert_eq!(web.fetch("/silent").await.unwrap_err(), FetchError::Timeout);
    assert_eq!(web.fetch("/drip").await.unwrap_err(), FetchError::Timeout);
    for path in ["/headers", "/nonsense", "/chunks"] {
        assert!(matches!(web.fetch(path).await, Err(FetchError::Failed(_))), "{path}");
    }
    assert_eq!(web.fetch("/long-headers").await.unwrap_err(), FetchError::HeadersTooLong);
    assert_eq!(web.fetch("/gzip-noise").await.unwrap_err(), FetchError::Undecodable);
    assert_eq!(web.fetch("/gone").await.unwrap().status, 410);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// J5
#[tokio::test]
async fn a_request_contains_nothing_but_the_address() {
    let web = Web::start().await;
    let page = web.fetch("/cookie").await.unwrap();
    assert_eq!(page.url.path(), "/page");
    let head = web.head.lock().unwrap().to_lowercase();
    let mut names: Vec<_> =
        head.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0)).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"], "{head}");
    assert!(
        head.contains("user-agent: outlast/") && head.contains("accept-encoding: gzip, br\r\n")
    );
}

/// J5
#[tokio::test]
async fn one_page_of_a_host_and_four_pages_in_all_are_fetched_at_once() {
    let web = Web::start().await;
    // Every name leads to the listener.
    let lookup: Lookup =
        Arc::new(|_| Box::pin(async { Ok(vec![std::net::Ipv4Addr::LOCALHOST.into()]) }));
    let options =
        FetchOptions { allow_private: true, lookup: Some(lookup), ..FetchOptions::default() };
    let fetcher = Arc::new(Fetcher::new(options).unwrap());
    for (hosts, most) in [(1, 1), (6, 4)] {
        let mut tasks = Vec::new();
        for number in 0..12 {
            let (fetcher, host, port) = (Arc::clone(&fetcher), number % hosts, web.port);
            tasks.push(tokio::spawn(async move {
                fetcher.fetch(&format!("http://h{host}.example:{port}/slow-page")).await
            }));
        }
        for task in tasks {
            assert_eq!(task.await.unwrap().unwrap().body, b"page");
        }
        assert_eq!(web.most.load(Ordering::SeqCst), most);
    }
}

/// J5
#[tokio::test]
async fn a_check_has_limits_of_bytes_and_time() {
    let web = Web::start().await;
    let options = |limits| FetchOptions { allow_private: true, limits, ..FetchOptions::default() };
    let limits = FetchLimits { check_bytes: 6 << 20, ..FetchLimits::default() };
    let fetcher = Fetcher::new(options(limits)).unwrap();
    assert!(fetcher.fetch(&web.url("/endless")).await.is_ok());
    assert_eq!(fetcher.fetch(&web.url("/endless")).await.unwrap_err(), FetchError::CheckLimit);
    let limits = FetchLimits { check: Duration::from_millis(100), ..FetchLimits::default() };
    let fetcher = Fetcher::new(options(limits)).unwrap();
    assert!(fetcher.fetch(&web.url("/silent")).await.is_err());
    assert_eq!(fetcher.fetch(&web.url("/page")).await.unwrap_err(), FetchError::CheckLimit);
}
