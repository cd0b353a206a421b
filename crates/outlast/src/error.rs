//! The failure of a command, with the next step and the exit code.

use std::fmt;
use std::process::ExitCode;

/// The result of a command, or of a part of one.
pub(crate) type CommandResult<T = ExitCode> = Result<T, CommandError>;

/// The result of a command that succeeded.
pub(crate) const DONE: CommandResult = Ok(ExitCode::SUCCESS);

/// A command's failure as a person reads it.
#[derive(Debug)]
pub(crate) struct CommandError {
    error: anyhow::Error,
    hint: Option<String>,
    exit_code: u8,
}

/// The exit code of work that failed.
const FAILED: u8 = 1;
/// The exit code of a command line or a configuration that is wrong.
const USAGE: u8 = 2;
/// The exit code of a step whose worker is gone: EX_TEMPFAIL of sysexits.h.
const WORKER_GONE: u8 = 75;
/// The exit code of a command whose time limit was reached first.
pub(crate) const TIMED_OUT: u8 = 3;

impl CommandError {
    /// Creates an error of the command line or the configuration; `hint` states a correct value.
    pub(crate) fn usage(error: impl Into<anyhow::Error>, hint: impl Into<String>) -> Self {
        Self { error: error.into(), hint: Some(hint.into()), exit_code: USAGE }
    }

    /// Creates the same error from a text.
    pub(crate) fn wrong(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::usage(anyhow::Error::msg(why.into()), hint)
    }

    /// Creates an error for work that failed, from a text and a next step.
    pub(crate) fn failed(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::from(anyhow::Error::msg(why.into())).hint(hint)
    }

    /// Creates an error for a time limit that was reached first.
    pub(crate) fn timed_out(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), hint: None, exit_code: TIMED_OUT }
    }

    /// Creates an error for a step whose worker is gone.
    pub(crate) fn worker_gone(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit_code: WORKER_GONE, ..Self::failed(why, hint) }
    }

    /// Adds a next step.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Makes it an error of the command line or the configuration if `is_usage`.
    pub(crate) fn usage_if(self, is_usage: bool) -> Self {
        Self { exit_code: if is_usage { USAGE } else { self.exit_code }, ..self }
    }

    /// Returns the next step, if one is known.
    pub(crate) fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the exit code for the shell.
    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

/// Returns the address of a page of the documentation, which is not installed with the program.
pub(crate) fn documentation(page: &str) -> String {
    format!("{}/blob/main/docs/{page}", env!("CARGO_PKG_REPOSITORY"))
}

/// Refuses a command line or a configuration with the mistake and a correct value.
pub(crate) fn refuse<T>(why: impl Into<String>, hint: impl Into<String>) -> CommandResult<T> {
    Err(CommandError::wrong(why, hint))
}

/// Turns any error into an error of the command line or the configuration.
pub(crate) trait OrUsage<T> {
    /// Adds a `hint` with a correct value.
    fn or_usage(self, hint: impl Into<String>) -> CommandResult<T>;
}

impl<T, E: Into<anyhow::Error>> OrUsage<T> for Result<T, E> {
    fn or_usage(self, hint: impl Into<String>) -> CommandResult<T> {
        self.map_err(|error| CommandError::usage(error, hint))
    }
}

impl<E: Into<anyhow::Error>> From<E> for CommandError {
    fn from(error: E) -> Self {
        Self { error: error.into(), hint: None, exit_code: FAILED }
    }
}

/// Writes the whole chain in one line: the attempt, then the reasons for its failure.
impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}
