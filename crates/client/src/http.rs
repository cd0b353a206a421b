//! The HTTP client under rmcp's Streamable HTTP transport. It makes its own requests so that every answer is
//! read with a limit and nothing is taken from the environment.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use outlast_http::{BodyError, ProxyOptions, SseDecoder, SseEvent, error_chain};
use reqwest::{RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse};

use crate::endpoint::Endpoint;
use crate::error::ClientError;
use crate::options::CANCEL_GRACE;
use crate::pending::PendingCalls;
use crate::stream::readable;

/// The time to open a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of calls that wait for the first byte of their answers concurrently; more are queued.
const CALLS: usize = 64;
const SSE: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

/// Creates the transport to this endpoint.
pub(crate) fn transport(
    endpoint: &Endpoint,
    longest: usize,
    pending: &Arc<PendingCalls>,
) -> Result<StreamableHttpClientTransport<HttpClient>, ClientError> {
    let web = HttpClient {
        client: client(endpoint.proxy.as_ref())?,
        endpoint: endpoint.clone(),
        longest,
        pending: pending.clone(),
    };
    let config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str())
        .max_concurrent_requests(CALLS)
        // Like cancellations over other transports, these wait at most one second.
        .control_request_timeout(CANCEL_GRACE);
    Ok(StreamableHttpClientTransport::with_client(web, config))
}

pub(crate) fn client(proxy: Option<&ProxyOptions>) -> Result<reqwest::Client, ClientError> {
    let builder = outlast_http::client_builder(proxy, CONNECT_TIMEOUT)
        .map_err(|error| ClientError::Usage(error.to_string()))?;
    builder.build().map_err(|error| ClientError::Usage(error_chain(&error)))
}

type TransportError = StreamableHttpError<HttpError>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The HTTP client of one connection.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: reqwest::Client,
    endpoint: Endpoint,
    longest: usize,
    pending: Arc<PendingCalls>,
}

impl HttpClient {
    /// Builds a request with the common headers.
    fn request(
        &self,
        method: Method,
        session: Option<&str>,
        protocol: HashMap<HeaderName, HeaderValue>,
    ) -> RequestBuilder {
        let request = self.endpoint.request(&self.client, method);
        let request = request.headers(protocol.into_iter().collect());
        match session {
            Some(session) => request.header(SESSION, session),
            None => request,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, HttpError> {
        request.send().await.map_err(|error| match error.is_connect() {
            true => HttpError::Unreachable(error.without_url()),
            false => HttpError::Broken(error.without_url()),
        })
    }

    /// Reads the whole body; a body over the limit ends the connection.
    async fn body(&self, response: Response) -> Result<Vec<u8>, HttpError> {
        outlast_http::read_body(response, self.longest).await.map_err(|error| match error {
            BodyError::Broken(error) => HttpError::Broken(error),
            BodyError::TooLarge { .. } => {
                self.pending.broken.cancel();
                HttpError::TooLong
            }
        })
    }

    /// Returns the events of an answer; an event over the limit ends the stream and the connection.
    fn events(&self, response: Response) -> Events {
        let decoder = SseDecoder::new(self.longest);
        let start = (response, decoder, self.pending.clone());
        let events = stream::try_unfold(start, async |(mut response, mut decoder, pending)| {
            loop {
                if let Some(event) = decoder.next_event() {
                    let SseEvent { event, data, id, retry } = event;
                    return Ok(Some((
                        Sse { event, data, id, retry },
                        (response, decoder, pending),
                    )));
                }
                let piece = response.chunk().await;
                let piece = piece.map_err(|error| HttpError::Broken(error.without_url()))?;
                let Some(piece) = piece else { return Ok(None) };
                decoder.push(&piece).map_err(|_| {
                    pending.broken.cancel();
                    HttpError::TooLong
                })?;
            }
        });
        events.map_err(|error: HttpError| SseError::Body(Box::new(error))).boxed()
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let request = self.request(Method::POST, session.as_deref(), headers);
        let request = request.header(ACCEPT, format!("{JSON}, {SSE}")).json(&message);
        let response = self.send(request).await?;
        let status = response.status();
        let kind = content_type(&response);
        let new_session = response.headers().get(SESSION);
        let new_session = new_session.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let expects = matches!(message, ClientJsonRpcMessage::Request(_));
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(HttpError::Unauthorized.into()),
            StatusCode::NOT_FOUND if session.is_some() => Err(TransportError::SessionExpired),
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            _ if !status.is_success() => {
                let body = self.body(response).await?;
                interpret_refusal(&message, session.is_some(), status, &body)
            }
            _ if !expects => Ok(StreamableHttpPostResponse::Accepted),
            _ if kind.starts_with(SSE) => {
                Ok(StreamableHttpPostResponse::Sse(self.events(response), new_session))
            }
            _ if kind.starts_with(JSON) => {
                let body = self.body(response).await?;
                let body = readable(&body).unwrap_or(body);
                let message = serde_json::from_slice(&body).map_err(|_| HttpError::NotMcp)?;
                Ok(StreamableHttpPostResponse::Json(message, new_session))
            }
            _ => Err(HttpError::NotMcp.into()),
        }
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session: Arc<str>,
        _token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), TransportError> {
        let request = self.request(Method::DELETE, Some(&session), headers);
        // The server may keep the session; that is its own decision.
        self.send(request).await?;
        Ok(())
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, TransportError> {
        let request = self.request(Method::GET, session.as_deref(), headers);
        let mut request = request.header(ACCEPT, SSE);
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT, last_event);
        }
        let response = self.send(request).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(TransportError::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(HttpError::Status(status, String::new()).into()),
            _ if content_type(&response).starts_with(SSE) => Ok(self.events(response)),
            _ => Err(HttpError::NotMcp.into()),
        }
    }
}

/// Interprets a refusal, which may be a JSON-RPC error. For the question about the newest era, any refusal is
/// an answer.
fn interpret_refusal(
    message: &ClientJsonRpcMessage,
    in_session: bool,
    status: StatusCode,
    body: &[u8],
) -> Result<StreamableHttpPostResponse, TransportError> {
    let said = match serde_json::from_slice::<ServerJsonRpcMessage>(body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !in_session
        && status.is_client_error()
    {
        let error = said.map(|said| said.error);
        let error = error.unwrap_or_else(|| {
            ErrorData::invalid_request(format!("server/discover was refused: HTTP {status}"), None)
        });
        let error = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(error, None));
    }
    if let Some(error) = said {
        return Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None));
    }
    let words: String = String::from_utf8_lossy(body).chars().take(200).collect();
    let words = words.trim();
    let words = if words.is_empty() { String::new() } else { format!(": {words}") };
    Err(HttpError::Status(status, words).into())
}

fn content_type(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.unwrap_or_default().to_ascii_lowercase()
}

/// The errors of the HTTP transport.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("the server cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    #[error("the connection broke")]
    Broken(#[source] reqwest::Error),
    #[error("missing or wrong token")]
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

/// Returns the error for the caller that corresponds to an error of this transport.
pub(crate) fn failure(error: &(dyn Error + Send + Sync + 'static)) -> Option<ClientError> {
    Some(match error.downcast_ref::<StreamableHttpError<HttpError>>()? {
        StreamableHttpError::Client(HttpError::Unauthorized) => ClientError::Unauthorized,
        StreamableHttpError::Client(error) => ClientError::Gone { how: error_chain(error) },
        error => ClientError::Gone { how: error_chain(error) },
    })
}
