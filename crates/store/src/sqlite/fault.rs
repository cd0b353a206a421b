//! What can go wrong inside a step, and what the caller is told about it.

use std::io;
use std::path::Path;

use outlast_core::StoreError;
use rusqlite::ErrorCode;

use crate::unavailable;

/// Why a step stopped: a refusal in the port's own words, or trouble with the database.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum Fault {
    Refused(#[from] StoreError),
    Sql(#[from] rusqlite::Error),
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
