//! The running server as a value.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::http::{self, App};
use crate::journal::{Journal, SeenRequest};
use crate::limits::Limits;
use crate::runs::Runs;
use crate::scenario::Scenario;
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
    /// Whether the Sonar endpoints still work.
    pub sonar: SonarMode,
    /// What the delays are measured by.
    pub clock: ClockMode,
    /// Where the sources of reports and searches are.
    pub pages: Pages,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            speed: 1.0,
            seed: 0,
            sonar: SonarMode::default(),
            clock: ClockMode::default(),
            pages: Pages::default(),
        }
    }
}

/// What the Sonar endpoints answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SonarMode {
    /// 403, as the vendor answers since September 2026.
    #[default]
    Retired,
    /// Answers and jobs, as before.
    Live,
}

/// What the delays are measured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockMode {
    /// The time that passes.
    #[default]
    Real,
    /// A clock that stands still until [`Simulator::advance`] or `POST /__sim/advance` moves it.
    Virtual,
}

/// Where the sources of reports and searches are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// At invented addresses below `.example`, which lead nowhere; the same on every port.
    #[default]
    Invented,
    /// At `/page/...` of the simulator, which answers there.
    Local,
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
        let url = format!("http://{address}");
        let clock = Arc::new(match options.clock {
            ClockMode::Real => Clock::real(options.speed),
            ClockMode::Virtual => Clock::standing(options.speed),
        });
        let pages = (options.pages == Pages::Local).then(|| url.clone());
        let app = Arc::new(App {
            runs: Arc::new(Runs::new(options.seed, clock, pages)),
            journal: Journal::new(),
            limits: Limits::default(),
        });
        let shutdown = CancellationToken::new();
        let tasks = TaskTracker::new();
        let doors = Doors { listener, shutdown: shutdown.clone(), open: tasks.clone() };
        let service = http::router(app.clone(), options.sonar)
            .into_make_service_with_connect_info::<Hangup>();
        let serve = axum::serve(doors, service).into_future();
        tasks.spawn(shutdown.clone().run_until_cancelled_owned(serve));
        tasks.close();
        Ok(Self { url, app, shutdown, tasks })
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

    /// Queues a scenario for each of the next submits and searches that bring none; the same as `POST /__sim/script`.
    ///
    /// # Errors
    ///
    /// When one of them is not understood; none is queued then.
    pub fn script(&self, scenarios: &[&str]) -> Result<(), String> {
        let scenarios: Result<_, _> = scenarios.iter().map(|text| Scenario::parse(text)).collect();
        self.app.runs.queue(scenarios?);
        Ok(())
    }

    /// Moves the virtual clock on; the same as `POST /__sim/advance`. A real clock is not moved, and the answer is false.
    pub fn advance(&self, by: Duration) -> bool {
        self.app.runs.clock.advance(by)
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
