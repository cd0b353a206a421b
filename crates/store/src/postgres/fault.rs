//! Errors inside a step, and their conversion to the errors that callers receive.

use std::time::Duration;

use deadpool_postgres::HookError;
use outlast_core::{BoxError, StoreError};
use tokio_postgres::error::{Severity, SqlState};

/// The reason why a step stopped.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum Fault {
    /// A refusal of the port.
    Refused(#[from] StoreError),
    /// An error of the database, or of the connection to it, before the step was committed.
    Sql(#[from] tokio_postgres::Error),
    /// The connection broke during the commit: the step may or may not have committed.
    CommitUnknown(BoxError),
    /// No connection was available.
    NoConnection(BoxError),
    /// The database did not respond in time, before the step was committed.
    NoAnswer(#[from] NoAnswer),
}

/// A database that is connected and does not respond.
#[derive(Debug, thiserror::Error)]
#[error("the database did not answer within {} s", .0.as_secs_f32())]
pub(crate) struct NoAnswer(Duration);

/// Waits for a response of the database, for at most this long.
pub(super) async fn within<T, E: Into<Fault>>(
    limit: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, Fault> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer.map_err(Into::into),
        Err(_) => Err(NoAnswer(limit).into()),
    }
}

impl Fault {
    /// Converts an error of writes that were sent together with their commit. If the server refused one of them, the commit
    /// undid all of them. If the connection ended at any of their responses, the commit may have happened before. A pooler
    /// reports FATAL when its connection to the server broke.
    pub(super) fn of_commit(error: tokio_postgres::Error) -> Self {
        let refused = error.as_db_error().is_some_and(|refusal| match refusal.parsed_severity() {
            Some(severity) => severity == Severity::Error,
            None => refusal.severity() == "ERROR",
        });
        if refused { Self::Sql(error) } else { Self::CommitUnknown(describe(&error).into()) }
    }

    /// Converts an error during a commit into one that leaves the outcome of the commit open.
    pub(super) fn mark_during_commit(self) -> Self {
        match self {
            Self::NoAnswer(late) => Self::CommitUnknown(late.into()),
            Self::Sql(error) => Self::of_commit(error),
            other => other,
        }
    }

    /// Returns true if a connection that failed like this may work again soon: the database is unavailable, starting or
    /// stopping.
    pub(super) fn is_passing(&self) -> bool {
        self.is_transient() || matches!(self, Self::NoAnswer(_))
    }

    /// Returns true if the database may have stopped responding.
    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Self::NoAnswer(_) | Self::CommitUnknown(_))
    }

    /// Describes the error for the log, with the server's own message.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Refused(error) => error.to_string(),
            Self::Sql(error) => describe(error),
            Self::CommitUnknown(error) | Self::NoConnection(error) => error.to_string(),
            Self::NoAnswer(error) => error.to_string(),
        }
    }

    /// Returns true if the step certainly did not commit, and an immediate retry may succeed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Refused(_) | Self::CommitUnknown(_) | Self::NoAnswer(_) => false,
            Self::NoConnection(_) => true,
            Self::Sql(error) => Self::is_sql_transient(error),
        }
    }

    /// Does the same for an error of the database, or of the connection to it.
    pub(super) fn is_sql_transient(error: &tokio_postgres::Error) -> bool {
        match error.code() {
            Some(code) => TRANSIENT.contains(code),
            None => error.is_closed() || is_io(error),
        }
    }
}

/// Two steps conflicted, the server is stopping or starting, or it has become a standby.
const TRANSIENT: [SqlState; 9] = [
    SqlState::T_R_SERIALIZATION_FAILURE,
    SqlState::T_R_DEADLOCK_DETECTED,
    SqlState::LOCK_NOT_AVAILABLE,
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::READ_ONLY_SQL_TRANSACTION,
    SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    SqlState::TOO_MANY_CONNECTIONS,
];

/// A prepared statement already exists, or does not exist.
const POOLED: [SqlState; 2] =
    [SqlState::DUPLICATE_PSTATEMENT, SqlState::INVALID_SQL_STATEMENT_NAME];

const NOT_PASSED_ON: &str = "; a pooler that gives out connections per transaction must pass prepared statements on (PgBouncer 1.21, \
     max_prepared_statements): better connect to PostgreSQL itself, or in session mode (docs/postgres.md)";

fn is_io(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}

impl From<deadpool_postgres::PoolError> for Fault {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error)
            | deadpool_postgres::PoolError::PostCreateHook(HookError::Backend(error)) => {
                Self::Sql(error)
            }
            // A hook returns a message only if it refuses the database: see `connect.rs`.
            deadpool_postgres::PoolError::PostCreateHook(HookError::Message(why)) => {
                Self::Refused(StoreError::Outdated { why: why.into_owned() })
            }
            other => Self::NoConnection(other.into()),
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(error) => error,
            Fault::Sql(error) => of_sql(error),
            Fault::CommitUnknown(error) => StoreError::Unconfirmed(error),
            Fault::NoConnection(error) => StoreError::Unavailable(error),
            Fault::NoAnswer(error) => StoreError::Unavailable(error.into()),
        }
    }
}

/// Groups errors by the caller's remedy: free space, repair, or retry.
fn of_sql(error: tokio_postgres::Error) -> StoreError {
    match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => StoreError::Full,
        Some(code) if *code == SqlState::DATA_CORRUPTED || *code == SqlState::INDEX_CORRUPTED => {
            StoreError::Corrupt { at: describe(&error) }
        }
        _ => StoreError::Unavailable(describe(&error).into()),
    }
}

/// Returns the server's own message if there is one; the driver's text leaves it out.
fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(database) => {
            let is_pooled = POOLED.contains(database.code());
            let why = if is_pooled { NOT_PASSED_ON } else { "" };
            format!("{} ({}){why}", database.message(), database.code().code())
        }
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f2_our_own_mistake_is_not_repeated() {
        let error = "port=none".parse::<tokio_postgres::Config>().unwrap_err();
        assert!(!Fault::Sql(error).is_transient());
    }
}
