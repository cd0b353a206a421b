//! MCP over Streamable HTTP, both protocol eras, for many owners: admission, rate limits and shutdown.
//!
//! [`admission`] checks every request before its route; rmcp implements MCP.

mod admission;
mod page_admission;
mod allowed_hosts;
mod client_address;
mod tokens;
mod oauth;
mod scopes;
mod limits;
mod http_refusal;

mod app;
mod routes;
mod body;
mod mcp;
mod sessions;
mod session_id;
mod unheld_calls;
mod lost_calls;

mod listener;
mod connections;
mod write_timeout;
mod capacity;

pub use allowed_hosts::{Hosts, NotAName, Origins};
pub use client_address::TrustedProxies;
pub use limits::Rates;
pub use oauth::{ResourceServer, ScopeNames};
pub(crate) use scopes::access_for_tool;
pub(crate) use tokens::the_one;
pub use tokens::{BadToken, Callers, Token, Tokens};

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use outlast_core::rules::Sharing;
use outlast_engine::Shutdown;
use rmcp::ServerHandler;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::page::{PageOptions, SignedOut};
use crate::server::Server;
pub(crate) use app::{App, FormSender};
use capacity::Capacity;
use connections::Connections;
use limits::Limits;
use listener::Listener;
use sessions::Sessions;

/// The time that calls in progress have to be answered after a stop was requested.
const ANSWER_GRACE: Duration = Duration::from_millis(1200);
/// The time that connections have to close after that.
const CLOSE_GRACE: Duration = Duration::from_millis(300);

/// The routes that a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routes {
    /// MCP, the page, health and metrics.
    All,
    /// Health and metrics: for a process that accepts no calls.
    OfOperators,
}

/// The configuration of an HTTP server.
pub struct HttpOptions {
    /// The routes.
    pub routes: Routes,
    /// The callers that may use the server.
    pub callers: Callers,
    /// The OAuth issuer whose tokens are accepted next to the server's own.
    pub oauth: Option<ResourceServer>,
    /// The host names that this server answers to.
    pub hosts: Hosts,
    /// The origins of web pages that may call the server.
    pub origins: Origins,
    /// The proxies that report the addresses of their clients.
    pub trusted_proxies: TrustedProxies,
    /// The rate limits.
    pub rates: Rates,
    /// The time for which an idle session is kept.
    pub session_idle: Duration,
    /// The limits on the resources that clients may use.
    pub room: Room,
    /// The page at `/ui`.
    pub page: PageOptions,
}

impl HttpOptions {
    /// Returns whether several owners share the server.
    pub fn sharing(&self) -> Sharing {
        match self.oauth {
            Some(_) => Sharing::SeveralOwners,
            None => self.callers.sharing(),
        }
    }
}

/// The limits on the resources that all clients together may use. Owners share them: see [`outlast_core::rules::Sharing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The number of connections. A quarter is for connections that have not shown a token yet.
    pub connections: usize,
    /// The bytes of requests that are being read or processed.
    pub body_bytes: usize,
    /// The time for which a client may accept no bytes of a response.
    pub write_timeout: Duration,
}

impl Default for Room {
    fn default() -> Self {
        // A waiting poll holds a connection, so there may be more connections than calls being processed. A body takes
        // several times its size in memory while it is parsed.
        let write_timeout = Duration::from_secs(60);
        Self { connections: 16_000, body_bytes: 64 << 20, write_timeout }
    }
}

/// Serves until a stop is requested, then answers calls in progress with the current state and closes every connection.
pub fn serve_http(
    server: Server,
    options: HttpOptions,
    listener: TcpListener,
    stop: Shutdown,
) -> BoxFuture<'static, ()> {
    serve_handler(server.clone(), server, options, listener, stop).boxed()
}

/// Serves like [`serve_http`], with `handler` in front of the server: the handler answers MCP and has its own tools.
pub async fn serve_handler<H: ServerHandler + Clone>(
    handler: H,
    server: Server,
    options: HttpOptions,
    listener: TcpListener,
    stop: Shutdown,
) {
    let (rates, session_idle, room) = (options.rates, options.session_idle, options.room);
    let sharing = options.sharing();
    let connections = Arc::new(Connections::new(room.connections, sharing));
    let closed = CancellationToken::new();
    let app = Arc::new(App {
        server,
        mcp_service: mcp::mcp_service(handler),
        options,
        limits: Limits::new(rates),
        bodies: Capacity::new(room.body_bytes, sharing),
        sessions: Arc::new(Sessions::new()),
        unheld_calls: Arc::default(),
        signed_out: SignedOut::default(),
        stop: stop.clone(),
        closed: closed.clone(),
    });
    let upkeep = outlast_engine::spawn(closed.clone().run_until_cancelled_owned({
        let app = Arc::clone(&app);
        async move { tokio::join!(app.sessions.reap(session_idle), app.limits.forget()) }
    }));
    if let Ok(address) = listener.local_addr() {
        match app.options.routes {
            Routes::All => tracing::info!("listening on http://{address}/mcp"),
            Routes::OfOperators => tracing::info!("serving health and metrics on http://{address}"),
        }
    }
    let open = TaskTracker::new();
    let accepting = Listener {
        listener,
        router: routes::router(app),
        connections,
        write_timeout: room.write_timeout,
        open: open.clone(),
        stop: stop.clone(),
        closed: closed.clone(),
    };
    let accepting =
        outlast_engine::spawn(closed.clone().run_until_cancelled_owned(accepting.accept()));

    stop.wait().await;
    // Waiting polls end with the stop and answer "still running"; new callers are refused because the server is stopping.
    open.close();
    if tokio::time::timeout(ANSWER_GRACE, open.wait()).await.is_err() {
        tracing::info!("connections are closed with calls under way; the jobs go on");
    }
    closed.cancel();
    drop(tokio::time::timeout(CLOSE_GRACE, open.wait()).await);
    drop(tokio::join!(accepting, upkeep));
}
