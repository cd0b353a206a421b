use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

fn table(entries: &'static [(&str, &[&str])]) -> Lookup {
    Arc::new(move |name| {
        let found = entries.iter().find(|(known, _)| *known == name);
        let found = found.map(|(_, ips)| ips.iter().map(|ip| ip.parse().unwrap()).collect());
        Box::pin(async move { found.ok_or(io::ErrorKind::NotFound.into()) })
    })
}

/// Counts the connections to a port of loopback, and redirects each to a target.
async fn redirecting(target: &'static str) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = stream.read(&mut [0; 4096]).await;
            let target = target.replace("PORT", &port.to_string());
            let answer =
                format!("HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (port, count)
}

fn fetcher(policy: Policy, lookup: Lookup) -> Fetcher {
    Fetcher::with_policy(policy, FetchOptions { lookup: Some(lookup), ..FetchOptions::default() })
        .unwrap()
}

/// J5: the port rule is lifted here so that only the address rule is left.
#[tokio::test]
async fn no_connection_is_made_to_a_refused_address() {
    let (port, count) = redirecting("/").await;
    let names: &[(&str, &[&str])] = &[
        ("rebound.example", &["127.0.0.1"]),
        ("mixed.example", &["93.184.215.14", "127.0.0.1"]),
        ("mapped.example", &["::ffff:127.0.0.1"]),
    ];
    let fetcher = fetcher(Policy { any_address: false, any_port: true }, table(names));
    let hosts = [
        "127.0.0.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "rebound.example",
        "mixed.example",
        "mapped.example",
    ];
    for host in hosts {
        let refused = fetcher.fetch(&format!("http://{host}:{port}/")).await;
        assert_eq!(refused.unwrap_err(), AddressRefusal::PrivateAddress.into(), "{host}");
    }
    assert!(matches!(
        fetcher.fetch(&format!("http://localhost:{port}/")).await,
        Err(FetchError::Refused(AddressRefusal::LocalName))
    ));
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

/// J5
#[tokio::test]
async fn a_redirect_is_checked_like_an_address_of_the_report() {
    let lifted = Policy { any_address: true, any_port: true };
    for (target, refusal) in [
        ("file:///etc/passwd", AddressRefusal::Scheme),
        ("http://user:pass@127.0.0.1:PORT/", AddressRefusal::UserInfo),
        ("http://[fe80::1%25lo]/", AddressRefusal::Invalid),
    ] {
        let (port, count) = redirecting(target).await;
        let refused = fetcher(lifted, table(&[])).fetch(&format!("http://127.0.0.1:{port}/")).await;
        assert_eq!(refused.unwrap_err(), refusal.into(), "{target}");
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
    let (port, count) = redirecting("http://127.0.0.1:PORT/again").await;
    let refused = fetcher(lifted, table(&[])).fetch(&format!("http://127.0.0.1:{port}/")).await;
    assert_eq!(refused.unwrap_err(), FetchError::TooManyRedirects);
    assert!(count.load(Ordering::Relaxed) <= 6);
}

/// J5
#[tokio::test]
async fn a_proxy_is_refused_unless_it_is_allowed() {
    let (port, count) = redirecting("/").await;
    let proxy = || ProxyOptions {
        url: format!("http://127.0.0.1:{port}"),
        scope: outlast_http::ProxyScope::Everything,
        except: "direct.example".to_owned(),
    };
    let options = |through_proxy| FetchOptions {
        through_proxy,
        proxy: Some(proxy()),
        lookup: Some(table(&[("direct.example", &["10.0.0.1"])])),
        ..FetchOptions::default()
    };
    let strict = Fetcher::new(options(false)).unwrap();
    assert_eq!(
        strict.fetch("http://example.org/").await.unwrap_err(),
        AddressRefusal::Proxy.into()
    );
    let direct = strict.fetch("http://direct.example/").await;
    assert_eq!(direct.unwrap_err(), AddressRefusal::PrivateAddress.into());
    assert_eq!(count.load(Ordering::Relaxed), 0);
    let through = Fetcher::new(options(true)).unwrap();
    // The scripted proxy redirects to itself.
    assert_eq!(
        through.fetch("http://example.org/").await.unwrap_err(),
        FetchError::TooManyRedirects
    );
    assert!(count.load(Ordering::Relaxed) > 0);
    assert_eq!(
        through.fetch("http://127.0.0.1/").await.unwrap_err(),
        AddressRefusal::PrivateAddress.into()
    );
}

/// J4: robots.txt is asked only if a person wants it, once for each site.
#[tokio::test]
async fn j4_robots_are_respected_if_a_person_wants_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let recorded = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let length = stream.read(&mut head).await.unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or("").to_owned();
            let body = if path == "/robots.txt" {
                "User-agent: *\nDisallow: /secret\n"
            } else {
                "<p>A page."
            };
            recorded.lock().unwrap().push(path);
            let answer = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let fetcher = |respect_robots| {
        let options = FetchOptions { allow_private: true, respect_robots, ..Default::default() };
        Fetcher::new(options).unwrap()
    };
    let site = format!("http://127.0.0.1:{port}");
    let polite = fetcher(true);
    assert!(polite.fetch(&format!("{site}/page")).await.is_ok());
    let refused = polite.fetch(&format!("{site}/secret/page")).await;
    assert_eq!(refused.unwrap_err(), AddressRefusal::Robots.into());
    assert_eq!(*asked.lock().unwrap(), ["/robots.txt", "/page"]);
    assert!(fetcher(false).fetch(&format!("{site}/secret/page")).await.is_ok());
    assert_eq!(asked.lock().unwrap().last().unwrap(), "/secret/page");
}
