//! The requests of a browser to the page, and its state.

use std::net::SocketAddr;
use std::time::Duration;

use crate::http::client::{Reply, say};

/// The time limit of a view in a test; a limit, never a pause.
const LIMIT: Duration = Duration::from_secs(60);

/// A browser with its cookie.
#[derive(Clone)]
pub(crate) struct Browser {
    pub(crate) address: SocketAddr,
    pub(crate) cookie: String,
}

/// A completely read answer.
pub(crate) struct Shown {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) location: Option<String>,
    pub(crate) cookie: Option<String>,
}

impl Browser {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, cookie: String::new() }
    }

    /// Signs a browser in with this token.
    pub(crate) async fn signed_in(address: SocketAddr, token: &str) -> Self {
        let mut browser = Self::new(address);
        let shown = browser.post("/ui/sign-in", &[("token", token)]).await;
        assert_eq!((shown.status, shown.location.as_deref()), (303, Some("/ui")), "{}", shown.body);
        browser.keep(&shown);
        browser
    }

    pub(crate) fn keep(&mut self, shown: &Shown) {
        let cookie = shown.cookie.clone().expect("a cookie");
        self.cookie = cookie.split(';').next().unwrap().to_owned();
    }

    pub(crate) async fn reply(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut text = format!("{line} HTTP/1.1\r\nHost: {}\r\n", self.address);
        if !self.cookie.is_empty() {
            text.push_str(&format!("Cookie: {}\r\n", self.cookie));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        say(self.address, text.as_bytes()).await.expect("an answer")
    }

    pub(crate) async fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Shown {
        let reply = self.reply(line, headers, body).await;
        let (status, head) = (reply.status, reply.head.clone());
        let location = reply.header("location").map(str::to_owned);
        let cookie = reply.header("set-cookie").map(str::to_owned);
        Shown { status, head, location, cookie, body: reply.body().await }
    }

    pub(crate) async fn get(&self, path: &str) -> Shown {
        self.send(&format!("GET {path}"), &[("Sec-Fetch-Site", "none")], "").await
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Shown {
        let encode =
            |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
        let body: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let origin = format!("http://{}", self.address);
        let headers = [
            ("Sec-Fetch-Site", "same-origin"),
            ("Origin", origin.as_str()),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        self.send(&format!("POST {path}"), &headers, &body.join("&")).await
    }

    /// Asks with everything confirmed, and returns the path of the job.
    pub(crate) async fn ask(&self, question: &str) -> String {
        let fields = [("question", question), ("effort", "low"), ("confirmed", "yes")];
        let shown = self.post("/ui/ask", &fields).await;
        assert_eq!(shown.status, 303, "{}", shown.body);
        shown.location.expect("the job")
    }

    /// Reads a view until it shows this text.
    pub(crate) async fn until(&self, path: &str, text: &str) -> Shown {
        let reading = async {
            loop {
                let shown = self.get(path).await;
                if shown.body.contains(text) {
                    return shown;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let read = tokio::time::timeout(LIMIT, reading).await;
        match read {
            Ok(shown) => shown,
            Err(_) => panic!("{path} never shows {text}: {}", self.get(path).await.body),
        }
    }
}
