//! Durations, and their statistics.

use std::time::Duration;

/// The durations of a repeated operation.
#[derive(Default)]
pub(crate) struct Figures(Vec<Duration>);

impl Figures {
    pub(crate) fn add(&mut self, duration: Duration) {
        self.0.push(duration);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Prints one line of the table, in milliseconds.
    pub(crate) fn print(mut self, name: &str) {
        self.0.sort();
        let at = |share: f64| {
            let last = self.0.len().saturating_sub(1);
            let index = (last as f64 * share).round() as usize;
            self.0.get(index).map_or(f64::NAN, |duration| duration.as_secs_f64() * 1e3)
        };
        println!("{name:<44} {:>6.2} ms {:>6.2} ms {:>6.2} ms", at(0.5), at(0.99), at(1.0));
    }
}

/// Converts milliseconds to a duration; a clock that seems to run backwards gives zero.
pub(crate) fn millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
