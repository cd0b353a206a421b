//! Sockets: limits on connections, headers and writes, and a shutdown that answers the requests in progress.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Extension;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use outlast_engine::Shutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::admission::HttpPeer;
use super::connections::{Connection, Connections};
use super::write_timeout::WriteTimeout;

/// The time limit for a client's headers, and for a pause between requests on a connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of all headers of a request.
const MAX_HEADER_BYTES: usize = 32 * 1024;
/// The pause after the system could not provide a socket.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections and serves each in a separate task.
pub(super) struct Listener {
    pub(super) listener: TcpListener,
    pub(super) router: Router,
    pub(super) connections: Arc<Connections>,
    /// The time for which a client may accept no bytes of a response.
    pub(super) write_timeout: Duration,
    /// Counts the open connections, so that a stop can wait for the last one.
    pub(super) open: TaskTracker,
    pub(super) stop: Shutdown,
    /// Closes all connections.
    pub(super) closed: CancellationToken,
}

impl Listener {
    /// Accepts forever. It continues after a stop was requested, to report the stop to new clients.
    pub(super) async fn accept(self) {
        loop {
            let (stream, address) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) if is_of_the_client(&error) => continue,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections; raise the limit of open files");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let connection = self.connections.enter(address.ip());
            self.open.spawn(self.serve(stream, address, connection));
        }
    }

    /// Serves one connection until it ends.
    fn serve(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        connection: Connection,
    ) -> impl Future<Output = ()> + use<> {
        // Otherwise small events wait for the client's delayed acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "could not switch off Nagle's algorithm");
        }
        let stream = WriteTimeout::new(stream, self.write_timeout);
        let made_room = connection.closed.clone();
        let router =
            self.router.clone().layer(Extension(HttpPeer { address: address.ip(), connection }));
        let (stop, closed) = (self.stop.clone(), self.closed.clone());
        async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .max_header_size(MAX_HEADER_BYTES)
                .keep_alive(!stop.is_asked());
            let late = stop.is_asked();
            let service = TowerToHyperService::new(router);
            let mut connection =
                std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
            let asked =
                async { if late { std::future::pending().await } else { stop.wait().await } };
            tokio::select! {
                ended = connection.as_mut() => return log_end(ended),
                () = closed.cancelled() => return,
                () = made_room.cancelled() => return,
                () = asked => connection.as_mut().graceful_shutdown(),
            }
            tokio::select! {
                ended = connection => log_end(ended),
                () = closed.cancelled() => {}
                () = made_room.cancelled() => {}
            }
        }
    }
}

fn log_end(ended: hyper::Result<()>) {
    let Err(error) = ended else { return };
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
    if source.is_some_and(|source: &io::Error| source.kind() == io::ErrorKind::TimedOut) {
        tracing::warn!("a connection was closed: its client took none of what was sent to it");
    } else {
        tracing::debug!(%error, "connection ended");
    }
}

/// Returns true if the client closed its connection before it was accepted.
fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
