//! What went wrong on the way to a server, and what that means to a caller.

use std::error::Error;

use http::StatusCode;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::error::ClientError;

/// What went wrong on the way.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebError {
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

impl From<WebError> for StreamableHttpError<WebError> {
    fn from(error: WebError) -> Self {
        Self::Client(error)
    }
}

/// What an error of this transport means to a caller.
pub(crate) fn failure(error: &(dyn Error + Send + Sync + 'static)) -> Option<ClientError> {
    Some(match error.downcast_ref::<StreamableHttpError<WebError>>()? {
        StreamableHttpError::Client(WebError::Unauthorized) => ClientError::Unauthorized,
        StreamableHttpError::Client(error) => ClientError::Gone { how: chain(error) },
        error => ClientError::Gone { how: chain(error) },
    })
}

/// An error with its causes.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
