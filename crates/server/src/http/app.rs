//! The state that every request can reach.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;
use http::HeaderMap;
use http_body_util::Full;
use outlast_core::OwnerId;
use outlast_engine::{Engine, Shutdown};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use tokio_util::sync::CancellationToken;

use super::HttpOptions;
use super::body::{self, BodyLimit, CountMoment};
use super::capacity::Capacity;
use super::http_refusal::HttpRefusal;
use super::limits::Limits;
use super::sessions::{OwnSessions, Sessions};
use super::unheld_calls::UnheldCalls;
use crate::audit::AuditLog;
use crate::page::SignedOut;
use crate::server::Server;

/// The routes that need no token.
pub(super) const HEALTH: &str = "/health";
pub(super) const LIVEZ: &str = "/livez";
pub(super) const READYZ: &str = "/readyz";
/// The path of the metrics.
pub(super) const METRICS: &str = "/metrics";

/// The state that every request can reach.
pub(crate) struct App {
    pub(super) server: Server,
    pub(super) mcp_service: McpService,
    pub(crate) options: HttpOptions,
    pub(super) limits: Limits,
    /// The bytes of requests that are being read or processed.
    pub(super) bodies: Arc<Capacity<OwnerId>>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) unheld_calls: Arc<UnheldCalls>,
    /// The sessions of the page that were signed out before they expired.
    pub(crate) signed_out: SignedOut,
    pub(crate) stop: Shutdown,
    /// Ends every stream.
    pub(super) closed: CancellationToken,
}

impl App {
    pub(crate) fn engine(&self) -> &Engine {
        &self.server.face.engine
    }

    /// Returns the audit log, if there is one.
    pub(crate) fn audit(&self) -> Option<&dyn AuditLog> {
        self.server.audit.as_deref()
    }

    /// Reads a form of the page of at most `bytes`. Its bytes count against the budget of `sender`.
    pub(crate) async fn read_form(
        &self,
        headers: &HeaderMap,
        body: Body,
        sender: FormSender<'_>,
        bytes: usize,
    ) -> Result<Bytes, Box<Response>> {
        // Tokens never belong to an owner with an empty name.
        let nobody = OwnerId::new("");
        let owner = match sender {
            FormSender::SignedIn(owner) => owner,
            FormSender::Stranger => &nobody,
        };
        let mut room = self.bodies.none(owner);
        // Discards little of a refused body: browsers never send a form that is too long.
        let limit = BodyLimit { bytes, counted: CountMoment::BeforeReading, discarded: 4 * bytes };
        let read = body::read(headers, body, &mut room, limit).await;
        read.map_err(|refused: HttpRefusal| Box::new(refused.into_response()))
    }
}

/// The sender of a form of the page.
#[derive(Clone, Copy)]
pub(crate) enum FormSender<'a> {
    /// An owner who is signed in.
    SignedIn(&'a OwnerId),
    /// A person who has not signed in yet.
    Stranger,
}

/// rmcp's HTTP service with the type of its handler erased.
pub(super) type McpService = Box<
    dyn Fn(
            Request<Full<Bytes>>,
            Arc<OwnSessions>,
            StreamableHttpServerConfig,
        ) -> BoxFuture<'static, Response>
        + Send
        + Sync,
>;
