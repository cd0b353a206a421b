//! Faults by call: one table of what each must lead to, for every dialect. A dialect says what its healthy answers
//! look like and where it differs; the table is printed when something else comes out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_core::{BeginError, Provider, ProviderError, RemoteRun, Request, Run, StopOutcome};

use crate::bench::{PATIENCE, follow, patiently};
use crate::canned::{Canned, Reply, Then, nothing, raw, reply};

/// The calls of a provider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Call {
    Submit,
    Stream,
    Poll,
    Cancel,
}

/// Makes the adapter for a server, with a limit for a call.
pub(crate) type Make = fn(&Canned, Duration) -> Box<dyn Provider>;

/// A provider's way of speaking.
pub(crate) struct Dialect {
    pub(crate) name: &'static str,
    pub(crate) make: Make,
    pub(crate) ask: Request,
    /// The call of a request line.
    pub(crate) call: fn(&str) -> Call,
    /// The answers of a server without fault, by how many calls of the kind came before. The run goes on until its
    /// stream reports its end, or for the first two polls.
    pub(crate) healthy: fn(Call, usize) -> Reply,
    /// The calls a run makes.
    pub(crate) calls: &'static [Call],
    /// Rows in which it differs from the table, and what they lead to here.
    pub(crate) otherwise: &'static [(Call, &'static [&'static str], &'static str)],
}

impl Dialect {
    fn expected(&self, row: &Row, at: Call) -> &'static str {
        let (name, _, expected) = row;
        let differs = |(call, rows, _): &&(Call, &[&str], &str)| *call == at && rows.contains(name);
        self.otherwise.iter().find(differs).map_or(expected[at as usize], |(_, _, here)| here)
    }
}

/// A fault's name, its answer, and what it must lead to for a submit, a stream, a poll and a cancel.
pub(crate) type Row = (&'static str, fn() -> Reply, [&'static str; 4]);

/// Long enough for anything that answers on this machine, short enough to wait for what never does.
const SHORT: Duration = Duration::from_millis(400);

/// The fault to serve, and the calls seen since it was chosen.
struct Cell {
    at: Call,
    fault: fn() -> Reply,
    calls: [usize; 4],
}

/// Serves every fault once at every call, and compares the results.
pub(crate) async fn check(dialect: Dialect, rows: &[Row]) {
    let cell = Arc::new(Mutex::new(Cell { at: Call::Submit, fault: hang_up, calls: [0; 4] }));
    let (shared, call, healthy) = (cell.clone(), dialect.call, dialect.healthy);
    let server = Canned::serve(move |line, _| {
        let call = call(line);
        let mut cell = shared.lock().unwrap();
        let before = cell.calls[call as usize];
        cell.calls[call as usize] += 1;
        if call == cell.at && before == 0 { (cell.fault)() } else { healthy(call, before) }
    })
    .await;
    let patient = (dialect.make)(&server, PATIENCE);
    let impatient = (dialect.make)(&server, SHORT);
    let (mut table, mut wrong) = (String::new(), 0);
    for row in rows {
        let (name, fault, _) = row;
        table.push_str(&format!("{name:<20}"));
        let provider = if fault().then == Then::Hold { &impatient } else { &patient };
        for &at in dialect.calls {
            *cell.lock().unwrap() = Cell { at, fault: *fault, calls: [0; 4] };
            let outcome = outcome(&**provider, &dialect.ask, at).await;
            let submits = cell.lock().unwrap().calls[Call::Submit as usize];
            table.push_str(&format!("| {at:?}: {outcome}"));
            let expected = dialect.expected(row, at);
            if outcome != expected || submits != 1 {
                wrong += 1;
                table.push_str(&format!(" <- expected {expected}; {submits} submits"));
            }
            table.push(' ');
        }
        table.push('\n');
    }
    for (_, names, _) in dialect.otherwise {
        for name in *names {
            assert!(rows.iter().any(|(row, _, _)| row == name), "there is no row {name}");
        }
    }
    assert_eq!(wrong, 0, "{}: {wrong} cells differ\n{table}", dialect.name);
}

/// The outcome of the fault at this call.
async fn outcome(provider: &dyn Provider, ask: &Request, at: Call) -> String {
    match patiently(provider.begin(ask, "key")).await {
        Err(error) => not_begun(&error),
        Ok(run) if at == Call::Cancel => stopped(provider, &run.remote()).await,
        Ok(mut run) => followed(&mut *run).await,
    }
}

/// The name of a submit that did not become a run.
pub(crate) fn not_begun(error: &BeginError) -> String {
    match error {
        BeginError::NotSent(error) => format!("NotSent {}", word(error)),
        BeginError::Refused(error) => format!("Refused {}", word(error)),
        BeginError::Unknown(error) => format!("Unknown {}", word(error)),
    }
}

/// The outcome of a run.
pub(crate) async fn followed(run: &mut dyn Run) -> String {
    match follow(run).await.end {
        Ok(_) => "report".to_owned(),
        Err(error) => word(&error),
    }
}

/// A stop that failed must be worth another try.
async fn stopped(provider: &dyn Provider, run: &RemoteRun) -> String {
    match patiently(provider.stop(run)).await {
        Ok(stop) => variant(stop),
        Err(error) => {
            let again = patiently(provider.stop(run)).await;
            assert!(again.is_ok(), "after {error:?}: {again:?}");
            format!("{}, then {}", word(&error), variant(again.unwrap()))
        }
    }
}

fn variant(stop: StopOutcome) -> String {
    let shown = format!("{stop:?}");
    shown.split([' ', '{']).next().unwrap_or_default().to_owned()
}

/// The name of the error.
fn word(error: &ProviderError) -> String {
    let shown = format!("{:?}", error.kind);
    shown.split([' ', '{']).next().unwrap_or_default().to_owned()
}

/// Bytes that none of our answers has.
pub(crate) fn raw_bytes(bytes: &'static [u8]) -> Reply {
    Reply { bytes: bytes.to_vec(), ..nothing(Then::Close) }
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
