//! Why a command did not do what it was asked, with the next step and the exit code.

use std::fmt;
use std::process::ExitCode;

/// What came of a command, or of a part of one.
pub(crate) type CommandResult<T = ExitCode> = Result<T, CommandError>;

/// All went well.
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
/// The exit code where the time given ended first.
pub(crate) const TIMED_OUT: u8 = 3;

impl CommandError {
    /// The command line or the configuration is wrong; `hint` says what would be right.
    pub(crate) fn usage(error: impl Into<anyhow::Error>, hint: impl Into<String>) -> Self {
        Self { error: error.into(), hint: Some(hint.into()), exit_code: USAGE }
    }

    /// The same, in words of our own.
    pub(crate) fn wrong(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::usage(anyhow::Error::msg(why.into()), hint)
    }

    /// Work that failed, in words of our own, with a next step.
    pub(crate) fn failed(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::from(anyhow::Error::msg(why.into())).hint(hint)
    }

    /// The time given ended first.
    pub(crate) fn timed_out(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), hint: None, exit_code: TIMED_OUT }
    }

    /// The same failure with a next step.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same failure, of the command line or the configuration where that is so.
    pub(crate) fn usage_if(self, is_usage: bool) -> Self {
        Self { exit_code: if is_usage { USAGE } else { self.exit_code }, ..self }
    }

    /// The next step, if one is known.
    pub(crate) fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// What the shell sees.
    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

/// Refuses a command line or a configuration: what is wrong with it, and what would be right.
pub(crate) fn refuse<T>(why: impl Into<String>, hint: impl Into<String>) -> CommandResult<T> {
    Err(CommandError::wrong(why, hint))
}

/// Whatever went wrong is wrong with the command line or the configuration.
pub(crate) trait OrUsage<T> {
    /// `hint` says what would be right.
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

/// The whole chain in one line: what was attempted, and why it did not work.
impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}
