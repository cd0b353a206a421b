//! The running server.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::calls::{CallCounts, Calls};
use crate::clock::Clock;
use crate::http;
use crate::journal::{Journal, SeenRequest};
use crate::options::{ClockMode, Options};
use crate::runs::Runs;
use crate::socket::{Hangup, SocketListener};
use crate::stats::Stats;
use crate::web::pages;

/// A simulator that runs until it is stopped or dropped.
///
/// Ids depend on the seed and on earlier runs, so a second simulator with the same seed returns the same ids
/// for the same submits in the same order.
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
    /// Fails if the port is in use or the speed is not a number above 0.
    pub async fn start(options: Options) -> io::Result<Self> {
        if !options.speed.is_finite() || options.speed <= 0.0 {
            let message = format!("the speed must be above 0, not {}", options.speed);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let address: SocketAddr = listener.local_addr()?;
        let url = format!("http://{address}");
        let clock = Arc::new(match options.clock {
            ClockMode::Real => Clock::real(options.speed),
            ClockMode::Virtual => Clock::manual(options.speed),
        });
        let hosts = web_hosts().await?;
        let origin = |listener: &TcpListener| Ok(format!("http://{}", listener.local_addr()?));
        let app = Arc::new(App {
            runs: Arc::new(Runs::new(options.seed, clock)),
            journal: Journal::new(),
            calls: CallCounts::default(),
            origins: hosts.iter().map(origin).collect::<io::Result<_>>()?,
        });
        let shutdown = CancellationToken::new();
        let tasks = TaskTracker::new();
        let serve = |listener, router: Router| {
            let doors =
                SocketListener { listener, shutdown: shutdown.clone(), open: tasks.clone() };
            let service = router.into_make_service_with_connect_info::<Hangup>();
            let serve = axum::serve(doors, service).into_future();
            tasks.spawn(shutdown.clone().run_until_cancelled_owned(serve));
        };
        serve(listener, http::router(app.clone(), options.sonar));
        for host in hosts {
            serve(host, pages::router(app.clone()));
        }
        tasks.close();
        Ok(Self { url, app, shutdown, tasks })
    }

    /// The base URL, such as `http://127.0.0.1:8080`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The current counts; the same as `GET /__sim/stats`.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.app.runs.stats()
    }

    /// The recorded requests, the newest 10,000; the same as `GET /__sim/requests`.
    #[must_use]
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.app.journal.requests()
    }

    /// Returns the requests to the scripted model, search and web; the same as `GET /__sim/calls`.
    #[must_use]
    pub fn calls(&self) -> Calls {
        self.app.calls.snapshot()
    }

    /// Returns the newest 500 requests to the scripted model; the same as `GET /__sim/prompts`.
    #[must_use]
    pub fn prompts(&self) -> Vec<Value> {
        self.app.calls.prompts()
    }

    /// Releases every run that is currently held by `hold`; the same as `POST /__sim/release`.
    pub fn release(&self) {
        self.app.runs.release();
    }

    /// Queues a scenario for each of the next submits and searches without one; the same as `POST
    /// /__sim/script`.
    ///
    /// # Errors
    ///
    /// Fails if one of them is invalid; then none is queued.
    pub fn script(&self, scenarios: &[&str]) -> Result<(), String> {
        self.app.runs.queue(scenarios)
    }

    /// Advances the virtual clock; the same as `POST /__sim/advance`. Returns false for a real clock, which
    /// cannot be advanced.
    pub fn advance(&self, by: Duration) -> bool {
        self.app.runs.clock.advance(by)
    }

    /// Closes the port and all connections; returns when none is left.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.wait().await;
    }

    /// Returns when the server has ended.
    pub async fn stopped(&self) {
        self.tasks.wait().await;
    }
}

/// Listens on the addresses of the web: 127.0.0.2 to 127.0.0.6 if the system has them, else 127.0.0.1.
async fn web_hosts() -> io::Result<Vec<TcpListener>> {
    let mut hosts = Vec::new();
    for last in 2..=6 {
        match TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), 0)).await {
            Ok(host) => hosts.push(host),
            Err(error) => tracing::debug!(%error, "failed to listen on 127.0.0.{last}"),
        }
    }
    if hosts.is_empty() {
        hosts.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?);
    }
    Ok(hosts)
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
