//! Real processes that misbehave over real pipes. Each is a few lines of shell, which knows the ids of a client that
//! greets and then calls.

use super::{answer, discovery, greeting, result};
use serde_json::json;

/// What a process does instead of serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// Greets, reads on, never answers.
    Silent,
    /// Greets, then reads nothing more: its pipe fills.
    NeverReads,
    /// Greets, and ends on the first call, with words on standard error and exit code 3.
    Dies,
    /// Greets, and answers a request that was never made.
    WrongId,
    /// Greets, and answers a call with one endless line.
    EndlessLine,
    /// Greets, and answers a call with progress that was not asked for, as fast as it can, and no answer.
    Floods,
    /// Greets, and answers a call with lines that are not JSON, then with a good answer.
    Garbage,
    /// Serves one call well, and then does not leave when its input is closed, nor on SIGTERM.
    Stays,
    /// The same, but leaves on SIGTERM.
    StaysUntilAsked,
}

/// A process that reads everything and says nothing, not even to the greeting.
pub const NEVER_GREETS: &str = "while read z; do :; done";

/// The words of [`Misbehaviour::Dies`].
pub const LAST_WORDS: &str = "out of cheese";

/// The script for `sh -c`, for a client that greets with `initialize`.
pub fn script(misbehaviour: Misbehaviour) -> String {
    let greet = format!("read a\necho '{}'\nread b\n", answer(&json!(0), greeting()));
    greet + &after_greeting(misbehaviour)
}

/// The same for a client that asks for the stateless era.
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
