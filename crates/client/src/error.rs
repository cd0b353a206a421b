//! The errors of a call.

use std::fmt;
use std::time::Duration;

use crate::patience::Limit;

/// The reasons a call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The caller passed something invalid.
    #[error("{0}")]
    Usage(String),
    /// The program could not be started.
    #[error("cannot start {program}")]
    Start {
        /// The name of the program.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The other side does not speak MCP, or closed the connection during the handshake.
    #[error("the handshake with the server failed: {0}")]
    Handshake(String),
    /// The other side did not complete the handshake in time.
    #[error("the server did not answer the handshake within {}", readable(*limit))]
    HandshakeTimedOut {
        /// The limit.
        limit: Duration,
    },
    /// The server requires a token, or a different one.
    #[error("the server requires a token, or rejected this one")]
    Unauthorized,
    /// A limit of the call was reached.
    #[error(transparent)]
    TimedOut(#[from] TimedOut),
    /// The server refused the request.
    #[error("the server refused: {message} ({code})")]
    Refused {
        /// The JSON-RPC code.
        code: i32,
        /// The server's message.
        message: String,
    },
    /// The connection was closed before the answer.
    #[error("the server closed the connection before it answered{}", after(how))]
    Gone {
        /// The known details: an exit status, the end of standard error, an error of the transport.
        how: String,
    },
    /// A message exceeded the size limit.
    #[error("a message from the server is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The answer arrived and cannot be read.
    #[error("the server's answer is not UTF-8")]
    NotUtf8,
    /// The server asks for input that only a person can give.
    #[error("the server asks for input, which this client cannot give")]
    NeedsInput,
    /// The task of the call was cancelled by another client or by the server.
    #[error("the task {task} was cancelled")]
    TaskCancelled {
        /// The id of the task.
        task: String,
    },
    /// The server does not know the task, or has forgotten it.
    #[error("the server does not know the task {task}: {message}")]
    TaskUnknown {
        /// The id of the task.
        task: String,
        /// The server's message.
        message: String,
    },
    /// The server's response is not a valid answer to this request.
    #[error("unexpected answer from the server: {0}")]
    Unexpected(String),
}

/// A limit was reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct TimedOut {
    /// The limit that was reached.
    pub limit: Limit,
    /// Its length.
    pub length: Duration,
    /// The time from the start of the request until the caller gave up.
    pub elapsed: Duration,
    /// The number of progress notifications received.
    pub notes: u64,
    /// The time since the last of them.
    pub last_note: Option<Duration>,
    /// True if the server was notified that the caller stopped waiting. False only if the server stopped
    /// reading.
    pub told: bool,
    /// The task of the call, if it became one.
    pub task: Option<GivenUpTask>,
}

/// A task that its caller gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUpTask {
    /// The id with which it can be resumed.
    pub id: String,
    /// The state of the task after that.
    pub fate: TaskFate,
}

/// The state of a task that its caller gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskFate {
    /// It keeps running at the server.
    GoesOn,
    /// The server confirmed its cancellation.
    Cancelled,
    /// The server was asked to cancel it and did not confirm in time.
    CancelUnconfirmed,
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = readable(self.length);
        match self.limit {
            Limit::Idle => write!(f, "no answer within the timeout of {length}")?,
            Limit::Total => write!(f, "no answer within the total timeout of {length}")?,
        }
        write!(f, " (after {}; ", readable(self.elapsed))?;
        match (self.notes, self.last_note) {
            (1, Some(ago)) => write!(f, "1 progress note, {} ago", readable(ago))?,
            (notes @ 2.., Some(ago)) => {
                write!(f, "{notes} progress notes, the last {} ago", readable(ago))?
            }
            _ => f.write_str("no progress")?,
        }
        match &self.task {
            Some(GivenUpTask { id, fate }) => match fate {
                TaskFate::GoesOn => write!(f, "; the task {id} goes on)"),
                TaskFate::Cancelled => write!(f, "; the task {id} was cancelled)"),
                TaskFate::CancelUnconfirmed => {
                    write!(f, "; the server did not confirm that the task {id} is cancelled)")
                }
            },
            None if self.told => f.write_str(")"),
            None => f.write_str("; the server has stopped reading)"),
        }
    }
}

fn after(how: &str) -> String {
    if how.is_empty() { String::new() } else { format!(": {how}") }
}

/// Formats a duration for people, exact to the millisecond below ten seconds.
fn readable(length: Duration) -> String {
    match length.as_millis() {
        millis @ 0..1_000 => format!("{millis} ms"),
        millis @ 1_000..10_000 if millis % 1_000 != 0 => format!("{:.1} s", length.as_secs_f64()),
        1_000..120_000 => format!("{} s", length.as_secs()),
        120_000..7_200_000 => format!("{} min", length.as_secs() / 60),
        _ => format!("{} h", length.as_secs() / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d12_the_error_says_which_limit_how_long_and_what_was_seen() {
        let mut error = TimedOut {
            limit: Limit::Idle,
            length: Duration::from_secs(60),
            elapsed: Duration::from_millis(60_004),
            notes: 0,
            last_note: None,
            told: true,
            task: None,
        };
        assert_eq!(
            error.to_string(),
            "no answer within the timeout of 60 s (after 60 s; no progress)"
        );
        (error.notes, error.last_note) = (1, Some(Duration::from_millis(1_500)));
        assert!(error.to_string().ends_with("(after 60 s; 1 progress note, 1.5 s ago)"));
        (error.limit, error.length, error.notes) = (Limit::Total, Duration::from_secs(5_400), 12);
        error.told = false;
        assert_eq!(
            error.to_string(),
            "no answer within the total timeout of 90 min (after 60 s; 12 progress notes, the last 1.5 s ago; \
             the server has stopped reading)"
        );
        for (fate, said) in [
            (TaskFate::GoesOn, "; the task t-1 goes on)"),
            (TaskFate::Cancelled, "; the task t-1 was cancelled)"),
            (
                TaskFate::CancelUnconfirmed,
                "; the server did not confirm that the task t-1 is cancelled)",
            ),
        ] {
            error.task = Some(GivenUpTask { id: "t-1".to_owned(), fate });
            assert!(error.to_string().ends_with(said), "{error}");
        }
    }
}
