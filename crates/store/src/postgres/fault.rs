//! What can go wrong inside a step, and what the caller is told about it.

use std::time::Duration;

use deadpool_postgres::HookError;
use outlast_core::{BoxError, StoreError};
use tokio_postgres::error::{Severity, SqlState};

/// Why a step stopped.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum Fault {
    /// A refusal in the port's own words.
    Refused(#[from] StoreError),
    /// The database, or the connection to it, before the step was committed.
    Sql(#[from] tokio_postgres::Error),
    /// The connection broke while the commit was on its way: the step may have been done or not.
    CommitUnknown(BoxError),
    /// No connection could be had.
    NoConnection(BoxError),
    /// The database did not answer in time, before the step was committed.
    NoAnswer(#[from] NoAnswer),
}

/// A database that is connected and does not answer.
#[derive(Debug, thiserror::Error)]
#[error("the database did not answer within {} s", .0.as_secs_f32())]
pub(crate) struct NoAnswer(Duration);

/// Waits for an answer of the database, for this long at most.
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
    /// Of writes that went out together with their commit. Where the server refused one of them the commit undid them all; where the
    /// connection ended at any of their answers, it may have carried the commit before. A pooler says FATAL where the server's end
    /// broke.
    pub(super) fn of_commit(error: tokio_postgres::Error) -> Self {
        let refused = error.as_db_error().is_some_and(|refusal| match refusal.parsed_severity() {
            Some(severity) => severity == Severity::Error,
            None => refusal.severity() == "ERROR",
        });
        if refused { Self::Sql(error) } else { Self::CommitUnknown(told(&error).into()) }
    }

    /// Turns a fault met while a commit was on its way into one that leaves its outcome open.
    pub(super) fn during_commit(self) -> Self {
        match self {
            Self::NoAnswer(late) => Self::CommitUnknown(late.into()),
            Self::Sql(error) => Self::of_commit(error),
            other => other,
        }
    }

    /// Returns whether a connection that failed like this may work in a moment: the database is away, starts or stops.
    pub(super) fn is_passing(&self) -> bool {
        self.is_transient() || matches!(self, Self::NoAnswer(_))
    }

    /// Describes the fault for the log, with the server's own message.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Refused(error) => error.to_string(),
            Self::Sql(error) => told(error),
            Self::CommitUnknown(error) | Self::NoConnection(error) => error.to_string(),
            Self::NoAnswer(error) => error.to_string(),
        }
    }

    /// Whether the step was certainly not done and may be done if it is tried again at once.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Refused(_) | Self::CommitUnknown(_) | Self::NoAnswer(_) => false,
            Self::NoConnection(_) => true,
            Self::Sql(error) => Self::is_sql_transient(error),
        }
    }

    /// The same for an error of the database, or of the connection to it.
    pub(super) fn is_sql_transient(error: &tokio_postgres::Error) -> bool {
        match error.code() {
            Some(code) => TRANSIENT.contains(code),
            None => error.is_closed() || is_io(error),
        }
    }
}

/// Two steps met, the server is going down or coming up, or it has become a standby.
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

/// A prepared statement is known twice, or not at all.
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
            // Only a database that is refused makes a hook say something itself: see `connect.rs`.
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

/// By what the caller can do: make room, repair, or try again.
fn of_sql(error: tokio_postgres::Error) -> StoreError {
    match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => StoreError::Full,
        Some(code) if *code == SqlState::DATA_CORRUPTED || *code == SqlState::INDEX_CORRUPTED => {
            StoreError::Corrupt { at: told(&error) }
        }
        _ => StoreError::Unavailable(told(&error).into()),
    }
}

/// The server's own words where it has said something; the driver's text leaves them out.
fn told(error: &tokio_postgres::Error) -> String {
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
    fn f2_a_mistake_of_our_own_is_not_made_again() {
        let error = "port=none".parse::<tokio_postgres::Config>().unwrap_err();
        assert!(!Fault::Sql(error).is_transient());
    }
}
