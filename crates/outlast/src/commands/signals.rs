//! Signals: the first asks everybody to leave, a second one leaves at once.

use outlast_engine::Stop;
use tokio::signal::unix::{SignalKind, signal};

/// The first signal asks everybody to leave; a second one leaves at once.
pub(super) fn stop_on_signals(stop: Stop) -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if stop.is_asked() {
                std::process::exit(130);
            }
            stop.ask();
        }
    })
}
