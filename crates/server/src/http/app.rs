//! What every request can reach.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::Request;
use axum::response::Response;
use futures_util::future::BoxFuture;
use http_body_util::Full;
use outlast_core::OwnerId;
use outlast_engine::{Engine, Shutdown};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use tokio_util::sync::CancellationToken;

use super::HttpOptions;
use super::capacity::Capacity;
use super::limits::Limits;
use super::sessions::{OwnSessions, Sessions};
use super::unheld_calls::UnheldCalls;
use crate::server::Server;

/// The one route that asks for no token.
pub(super) const HEALTH: &str = "/health";

/// What every request can reach.
pub(crate) struct App {
    pub(super) server: Server,
    pub(super) mcp_service: McpService,
    pub(crate) options: HttpOptions,
    pub(super) limits: Limits,
    /// The bytes of requests that are being read or worked on.
    pub(super) bodies: Arc<Capacity<OwnerId>>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) unheld_calls: Arc<UnheldCalls>,
    pub(crate) stop: Shutdown,
    /// Ends every stream.
    pub(super) closed: CancellationToken,
}

impl App {
    /// Where jobs are.
    pub(crate) fn engine(&self) -> &Engine {
        &self.server.face.engine
    }
}

/// rmcp's HTTP service over a handler, whatever the type of that is.
pub(super) type McpService = Box<
    dyn Fn(
            Request<Full<Bytes>>,
            Arc<OwnSessions>,
            StreamableHttpServerConfig,
        ) -> BoxFuture<'static, Response>
        + Send
        + Sync,
>;
