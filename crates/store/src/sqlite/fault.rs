//! What can go wrong inside a step, and what the caller is told about it.

use std::io;
use std::path::Path;

use outlast_core::{BoxError, StoreError};
use rusqlite::ErrorCode;

/// Why a step stopped: a refusal in the port's own words, or trouble with the database.
#[derive(Debug)]
pub(crate) enum Fault {
    Refused(StoreError),
    Sql(rusqlite::Error),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(error) => error,
            Fault::Sql(error) => sql_error(error),
        }
    }
}

/// By what the caller can do: make room, repair, or try again.
fn sql_error(error: rusqlite::Error) -> StoreError {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, SqliteFailure,
        Utf8Error,
    };
    match &error {
        SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => StoreError::Full,
            // The shared-memory file cannot grow: the same full disk by another name.
            _ if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => StoreError::Full,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                StoreError::Corrupt { at: error.to_string() }
            }
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
                unavailable("another process does not let go of it")
            }
            _ => StoreError::Unavailable(error.into()),
        },
        FromSqlConversionFailure(..)
        | IntegralValueOutOfRange(..)
        | InvalidColumnType(..)
        | Utf8Error(..) => StoreError::Corrupt { at: error.to_string() },
        _ => StoreError::Unavailable(error.into()),
    }
}

/// Turns an error about this file into one of the port's.
pub(super) fn file_error(path: &Path) -> impl Fn(io::Error) -> StoreError {
    move |error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full,
        kind => unavailable(io::Error::new(kind, format!("{}: {error}", path.display()))),
    }
}

/// Trouble with the store itself, not a refusal.
pub(super) fn unavailable(why: impl Into<BoxError>) -> StoreError {
    StoreError::Unavailable(why.into())
}

/// A copy of an error, for each command of a transaction that failed.
pub(super) fn copied(error: &StoreError) -> StoreError {
    match error {
        StoreError::Full => StoreError::Full,
        StoreError::Corrupt { at } => StoreError::Corrupt { at: at.clone() },
        StoreError::Unavailable(source) => unavailable(source.to_string()),
        // A refusal ends its own command, never the transaction.
        refused => unavailable(refused.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn database_errors_are_told_by_what_can_be_done() {
        let sql = |code| sql_error(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        assert!(matches!(sql(ffi::SQLITE_FULL), StoreError::Full));
        assert!(matches!(sql(ffi::SQLITE_IOERR_SHMSIZE), StoreError::Full));
        assert!(matches!(sql(ffi::SQLITE_CORRUPT), StoreError::Corrupt { .. }));
        assert!(matches!(sql(ffi::SQLITE_NOTADB), StoreError::Corrupt { .. }));
        assert!(matches!(sql(ffi::SQLITE_BUSY), StoreError::Unavailable(_)));
        assert!(matches!(sql(ffi::SQLITE_IOERR), StoreError::Unavailable(_)));
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert!(matches!(file_error(Path::new("x"))(full), StoreError::Full));
    }
}
