//! Faults by call: what each must lead to, for any dialect. A dialect says what its healthy answers look like and
//! what it expects; the table is printed when something differs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_core::{BeginError, Provider, ProviderError, RemoteRun};
use serde_json::Value;

use crate::bench::{follow, patiently};
use crate::canned::{Canned, Reply, Then, nothing, raw, reply};

/// The calls of a provider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Call {
    Submit,
    Stream,
    Poll,
    Cancel,
}

/// A provider's way of speaking.
pub(crate) struct Dialect {
    pub(crate) make: fn(&Canned) -> Box<dyn Provider>,
    pub(crate) ask: Value,
    /// Which call a request line is.
    pub(crate) call: fn(&str) -> Call,
    /// The answers of a server without fault, by how many calls of the kind came before. The run goes on until its
    /// stream tells its end, or for the first two polls.
    pub(crate) healthy: fn(Call, usize) -> Reply,
    /// The calls a run makes.
    pub(crate) calls: &'static [Call],
}

/// A fault's name, its answer, and what it must lead to for a submit, a stream, a poll and a cancel.
pub(crate) type Row = (&'static str, fn() -> Reply, [&'static str; 4]);

/// Serves every fault once at every call, and compares what came of it.
pub(crate) async fn check(dialect: Dialect, rows: &[Row]) {
    let dialect = Arc::new(dialect);
    let mut table = String::new();
    let mut wrong = 0;
    for (name, fault, expected) in rows {
        table.push_str(&format!("{name:<24}"));
        for call in [Call::Submit, Call::Stream, Call::Poll, Call::Cancel] {
            if !dialect.calls.contains(&call) {
                continue;
            }
            let expected = expected[call as usize];
            let (outcome, submits) = outcome(&dialect, call, *fault).await;
            let differs = outcome != expected || submits > 1;
            wrong += usize::from(differs);
            let mark = if differs {
                format!("  <- not {expected}, {submits} submits")
            } else {
                String::new()
            };
            table.push_str(&format!("| {call:?}: {outcome}{mark:<4} "));
        }
        table.push('\n');
    }
    assert_eq!(wrong, 0, "{wrong} cells differ\n{table}");
}

/// What comes of one fault at one call, and how often the run was bought.
async fn outcome(dialect: &Arc<Dialect>, at: Call, fault: fn() -> Reply) -> (String, usize) {
    let (calls, speaks) = ([const { AtomicUsize::new(0) }; 4], dialect.clone());
    let server = Canned::serve(move |line, _| {
        let call = (speaks.call)(line);
        let before = calls[call as usize].fetch_add(1, Ordering::Relaxed);
        if call == at && before == 0 { fault() } else { (speaks.healthy)(call, before) }
    })
    .await;
    let provider = (dialect.make)(&server);
    let outcome = match patiently(provider.begin(&dialect.ask, "key")).await {
        Err(BeginError::NotSent(error)) => format!("NotSent {}", word(&error)),
        Err(BeginError::Refused(error)) => format!("Refused {}", word(&error)),
        Err(BeginError::Unknown(error)) => format!("Unknown {}", word(&error)),
        Ok(run) if at == Call::Cancel => stopped(&*provider, &run.remote()).await,
        Ok(mut run) => match follow(&mut *run).await.end {
            Ok(_) => "report".to_owned(),
            Err(error) => word(&error),
        },
    };
    let submits = server.lines().iter().filter(|line| (dialect.call)(line) == Call::Submit).count();
    (outcome, submits)
}

/// A stop that failed must be worth another try.
async fn stopped(provider: &dyn Provider, run: &RemoteRun) -> String {
    match patiently(provider.stop(run)).await {
        Ok(stop) => format!("{stop:?}"),
        Err(error) => {
            let again = patiently(provider.stop(run)).await;
            assert!(again.is_ok(), "after {error:?}: {again:?}");
            format!("{}, then {:?}", word(&error), again.unwrap())
        }
    }
}

/// The name of the trouble.
fn word(error: &ProviderError) -> String {
    let shown = format!("{:?}", error.trouble);
    shown.split([' ', '{']).next().unwrap_or_default().to_owned()
}

/// The provider's own words.
pub(crate) fn envelope(status: u16, kind: &str) -> Reply {
    reply(status, &format!(r#"{{"error":{{"message":"m","type":"{kind}","code":{status}}}}}"#))
}

/// The words of something between us and the provider.
pub(crate) fn html(status: u16) -> Reply {
    raw(status, "content-type: text/html", b"<html>odd</html>", Then::Close)
}

/// No answer at all.
pub(crate) fn hang_up() -> Reply {
    nothing(Then::Close)
}

/// A connection on which nothing ever comes.
pub(crate) fn silence() -> Reply {
    nothing(Then::Hold)
}

/// An answer that breaks off.
pub(crate) fn half_a_body() -> Reply {
    raw(200, "content-type: application/json\r\ncontent-length: 900", br#"{"id":"re"#, Then::Close)
}
