//! What went wrong on the way to a server, and what that means to a caller.

use std::error::Error;

use http::StatusCode;
use outlast_http::error_chain;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::error::ClientError;

/// What went wrong on the way.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("the server cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    #[error("the connection broke")]
    Broken(#[source] reqwest::Error),
    #[error("no or wrong token")]
    Unauthorized,
    #[error("HTTP {0}{1}")]
    Status(StatusCode, String),
    #[error("the answer is too long")]
    TooLong,
    #[error("the answer is not MCP")]
    NotMcp,
}

impl From<HttpError> for StreamableHttpError<HttpError> {
    fn from(error: HttpError) -> Self {
        Self::Client(error)
    }
}

/// What an error of this transport means to a caller.
pub(crate) fn failure(error: &(dyn Error + Send + Sync + 'static)) -> Option<ClientError> {
    Some(match error.downcast_ref::<StreamableHttpError<HttpError>>()? {
        StreamableHttpError::Client(HttpError::Unauthorized) => ClientError::Unauthorized,
        StreamableHttpError::Client(error) => ClientError::Gone { how: error_chain(error) },
        error => ClientError::Gone { how: error_chain(error) },
    })
}
