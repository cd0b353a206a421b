//! Signals: the first asks everything to stop, a second one exits at once. A closed terminal (SIGHUP) asks as Ctrl-C
//! does, but never exits at once: the shell and the kernel both send it, and jobs must be left to a worker first.

use std::time::Duration;

use outlast_engine::Shutdown;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// The exit code when the person left before the end.
pub(super) const INTERRUPTED: u8 = 130;

/// The reason why the process was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// The terminal was closed.
    HangUp,
}

/// The signals that ask a process to stop.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl Signals {
    /// Installs the handlers: from now on the signals no longer end the process by themselves.
    pub(super) fn listen() -> std::io::Result<Self> {
        // `nohup` ignores SIGHUP, and a handler would undo that.
        let hang_up = match outlast_platform::is_signal_ignored(SignalKind::hangup().as_raw_value())
        {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())?, hang_up })
    }

    /// Returns the next of them.
    pub(super) async fn next(&mut self) -> StopSignal {
        let Self { interrupt, terminate, hang_up } = self;
        let hung_up = async {
            match hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => StopSignal::Interrupt,
            _ = terminate.recv() => StopSignal::Terminate,
            _ = hung_up => StopSignal::HangUp,
        }
    }
}

/// Stops everything after the first signal; exits at once after a second one.
pub(super) fn stop_on_signals(stop: Shutdown) -> std::io::Result<impl Future<Output = ()>> {
    drain_on_signals(stop, Duration::ZERO)
}

/// Does the same, but after the first SIGTERM running jobs may continue for this time before everything stops.
pub(super) fn drain_on_signals(
    stop: Shutdown,
    drain: Duration,
) -> std::io::Result<impl Future<Output = ()>> {
    let mut signals = Signals::listen()?;
    Ok(async move {
        let mut deadline = None;
        loop {
            let asked = tokio::select! {
                asked = signals.next() => asked,
                () = past(deadline) => {
                    deadline = None;
                    if !stop.is_asked() {
                        tracing::info!("the time to drain is over; unfinished jobs are released");
                        stop.ask();
                    }
                    continue;
                }
            };
            if asked == StopSignal::Terminate && !drain.is_zero() && !stop.is_draining() {
                tracing::info!("draining for up to {} s", drain.as_secs());
                deadline = Some(Instant::now() + drain);
                stop.drain();
                continue;
            }
            if stop.is_asked() && asked != StopSignal::HangUp {
                std::process::exit(INTERRUPTED.into());
            }
            stop.ask();
        }
    })
}

/// Waits for a deadline, if there is one.
async fn past(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
