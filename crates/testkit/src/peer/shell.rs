//! Real processes that misbehave over real pipes. Each is a few lines of shell that assume the request ids of a
//! client that completes the handshake and then calls.

use super::{answer, discovery, greeting, result};
use serde_json::json;

/// The misbehaviour of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// Completes the handshake and reads on, but never answers.
    Silent,
    /// Completes the handshake, then reads nothing more, so its pipe fills.
    NeverReads,
    /// Completes the handshake and exits at the first call, with a message on standard error and exit code 3.
    Dies,
    /// Completes the handshake and answers a request that was never made.
    WrongId,
    /// Completes the handshake and answers a call with one endless line.
    EndlessLine,
    /// Completes the handshake and answers a call only with unsolicited progress, as fast as it can.
    Floods,
    /// Completes the handshake and answers a call with lines that are not JSON, then with a good answer.
    Garbage,
    /// Serves one call correctly, but does not exit when its input is closed, nor on SIGTERM.
    Stays,
    /// The same, but exits on SIGTERM.
    StaysUntilAsked,
}

/// A process that reads everything and answers nothing, not even the handshake.
pub const NEVER_GREETS: &str = "while read z; do :; done";

/// The message of [`Misbehaviour::Dies`].
pub const LAST_WORDS: &str = "out of cheese";

/// The script for `sh -c`, for a client that starts with `initialize`.
pub fn script(misbehaviour: Misbehaviour) -> String {
    let greet = format!("read a\necho '{}'\nread b\n", answer(&json!(0), greeting()));
    greet + &after_greeting(misbehaviour)
}

/// The script for a client that asks for the stateless era.
pub fn stateless_script(misbehaviour: Misbehaviour) -> String {
    let greet = format!("read a\necho '{}'\n", answer(&json!(0), discovery()));
    greet + &after_greeting(misbehaviour)
}

fn after_greeting(misbehaviour: Misbehaviour) -> String {
    let good = format!("read c\necho '{}'\n", answer(&json!(1), result("done")));
    let wrong = answer(&json!(77), result("not yours"));
    let note = json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": { "progressToken": 99, "progress": 1 }
    });
    match misbehaviour {
        Misbehaviour::Silent => "while read z; do :; done".to_owned(),
        Misbehaviour::NeverReads => "exec sleep 1000".to_owned(),
        Misbehaviour::Dies => format!("read c\necho '{LAST_WORDS}' >&2\nexit 3"),
        Misbehaviour::WrongId => format!("read c\necho '{wrong}'\nwhile read z; do :; done"),
        Misbehaviour::EndlessLine => "read c\nexec tr '\\0' x </dev/zero".to_owned(),
        Misbehaviour::Floods => format!("read c\nexec yes '{note}'"),
        Misbehaviour::Garbage => {
            format!("echo 'Starting up ...'\necho '{{\"a\":'\n{good}\ncat >/dev/null")
        }
        Misbehaviour::Stays => format!("trap '' TERM\n{good}while :; do sleep 1; done"),
        Misbehaviour::StaysUntilAsked => format!("{good}while :; do sleep 1; done"),
    }
}
