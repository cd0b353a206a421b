//! The running server as a value.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::http::{self, App};
use crate::journal::{Journal, SeenRequest};
use crate::limits::Limits;
use crate::runs::Runs;
use crate::socket::{Doors, Hangup};
use crate::stats::Stats;

/// How to run a simulator.
#[derive(Clone, Debug)]
pub struct Options {
    /// The port on 127.0.0.1; 0 takes any free one.
    pub port: u16,
    /// Divides all delays; must be above 0.
    pub speed: f64,
    /// Other seeds give other reports and other ids.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { port: 0, speed: 1.0, seed: 0 }
    }
}

/// A simulator that runs until it is stopped or dropped.
///
/// Ids depend on the seed and on the runs before, so a second simulator with the same seed gives the same ids for the same
/// submits in the same order.
pub struct Simulator {
    url: String,
    app: Arc<App>,
    shutdown: CancellationToken,
    /// The accept loop and every open socket.
    tasks: TaskTracker,
}

impl Simulator {
    /// Listens on 127.0.0.1 and serves in the background of the current runtime.
    ///
    /// # Errors
    ///
    /// When the port is taken, or the speed is no number above 0.
    pub async fn start(options: Options) -> io::Result<Self> {
        if !options.speed.is_finite() || options.speed <= 0.0 {
            let message = format!("the speed must be above 0, not {}", options.speed);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let address: SocketAddr = listener.local_addr()?;
        let app = Arc::new(App {
            runs: Arc::new(Runs::new(options.seed, options.speed)),
            journal: Journal::new(),
            limits: Limits::default(),
        });
        let shutdown = CancellationToken::new();
        let tasks = TaskTracker::new();
        let doors = Doors { listener, shutdown: shutdown.clone(), open: tasks.clone() };
        let service = http::router(app.clone()).into_make_service_with_connect_info::<Hangup>();
        let serve = axum::serve(doors, service).into_future();
        tasks.spawn(shutdown.clone().run_until_cancelled_owned(serve));
        tasks.close();
        Ok(Self { url: format!("http://{address}"), app, shutdown, tasks })
    }

    /// The base URL, such as `http://127.0.0.1:8080`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What was counted so far; the same as `GET /__sim/stats`.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.app.runs.stats()
    }

    /// The requests so far, the newest 10,000; the same as `GET /__sim/requests`.
    #[must_use]
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.app.journal.requests()
    }

    /// Lets every run that was made with `hold` and exists now go on; the same as `POST /__sim/release`.
    pub fn release(&self) {
        self.app.runs.release();
    }

    /// Closes the port and all connections, whatever they carry; returns when none is left.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.wait().await;
    }

    /// Returns when the server has ended.
    pub async fn stopped(&self) {
        self.tasks.wait().await;
    }
}

impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulator").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
