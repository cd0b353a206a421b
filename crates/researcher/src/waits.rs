//! Waits for servers that accept no request at present: the user sees the reason and the time of the next try, and the
//! waits have an end.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use outlast_core::{ProviderError, ProviderErrorKind};
use outlast_http::error_chain;
use url::Url;

use crate::engine_channel::{EngineChannel, ReportedWait};

/// The number of waits for a busy server in one attempt.
const MAX_WAITS: u32 = 6;
/// The longest wait between two tries to reach a server.
const LONGEST: Duration = Duration::from_secs(15);

/// The waits of one request.
pub(crate) struct ServerWaits<'a> {
    reports: &'a EngineChannel,
    shown: Option<ReportedWait<'a>>,
    count: u32,
    /// The time spent on waits for a server that cannot be reached, and its limit.
    unreachable: Duration,
    limit: Duration,
}

impl<'a> ServerWaits<'a> {
    pub(crate) fn new(reports: &'a EngineChannel, limit: Duration) -> Self {
        Self { reports, shown: None, count: 0, unreachable: Duration::ZERO, limit }
    }

    /// EngineChannel that the request is sent again later, and returns the wait; `None` after the last one. `asked` is the
    /// wait that the server asked for.
    pub(crate) fn next(&mut self, error: &ProviderError, asked: Duration) -> Option<Duration> {
        let wait = if error.kind == ProviderErrorKind::Unreachable {
            // 1, 2, 4, 8 seconds, and then every 15.
            let wait = Duration::from_secs(1 << self.count.min(4)).min(LONGEST);
            let left = self.limit.saturating_sub(self.unreachable);
            if left.is_zero() {
                return None;
            }
            let wait = wait.min(left);
            self.unreachable += wait;
            wait
        } else if self.count < MAX_WAITS {
            asked
        } else {
            return None;
        };
        self.count += 1;
        let reports = self.reports;
        self.shown.get_or_insert_with(|| reports.begin_wait());
        let reason = error.sentence.split("; ").next().unwrap_or_default();
        let mut letters = reason.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let reason: String = first.into_iter().chain(letters).collect();
        let seconds = wait.as_secs_f32().ceil();
        self.reports.report_wait(format!("{reason}; trying again in {seconds} s"));
        Some(wait)
    }
}

/// Returns the error of a server that does not accept a connection. `what` names it, `setting` holds its address.
pub(crate) fn unreachable(
    what: &str,
    address: &Url,
    setting: &str,
    error: &reqwest::Error,
) -> ProviderError {
    let reason = connection_reason(error);
    let sentence = format!(
        "{what} at {} does not answer ({reason}); start it, or correct {setting}",
        shown_address(address)
    );
    let detail = Some(error_chain(error));
    ProviderError { detail, ..ProviderError::new(ProviderErrorKind::Unreachable, sentence) }
}

/// Returns an address without what may be secret: user, password and query.
pub(crate) fn shown_address(address: &Url) -> String {
    let origin = address.origin().ascii_serialization();
    format!("{origin}{}", address.path().trim_end_matches('/'))
}

/// Returns the reason why a connection failed, in the words that people search for.
fn connection_reason(error: &reqwest::Error) -> &'static str {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            match error.kind() {
                io::ErrorKind::ConnectionRefused => return "connection refused",
                io::ErrorKind::NetworkUnreachable => return "network unreachable",
                io::ErrorKind::HostUnreachable => return "no route to host",
                io::ErrorKind::TimedOut => return "connection timed out",
                _ => {}
            }
        }
        let text = error.to_string();
        if text.contains("dns error") || text.contains("failed to lookup address") {
            return "the name is not known";
        }
        if text.contains("certificate") {
            return "its certificate is not trusted";
        }
        cause = error.source();
    }
    if error.is_timeout() { "connection timed out" } else { "no connection" }
}
