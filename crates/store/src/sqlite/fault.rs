//! Errors inside a step, and their conversion to the errors that callers receive.

use std::io;
use std::path::Path;

use outlast_core::StoreError;
use rusqlite::ErrorCode;

use crate::unavailable;

/// The reason why a step stopped: a refusal of the port, or a database error.
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

/// Groups errors by the caller's remedy: free space, repair, or retry.
fn sql_error(error: rusqlite::Error) -> StoreError {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, SqliteFailure,
        Utf8Error,
    };
    match &error {
        SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => StoreError::Full,
            // The shared-memory file cannot grow: another form of a full disk.
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
    fn database_errors_are_grouped_by_what_can_be_done() {
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
