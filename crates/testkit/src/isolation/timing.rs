//! How long answers about foreign ids took, and those about invented ones.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

#[derive(Default)]
pub(super) struct Timings(Mutex<BTreeMap<&'static str, Samples>>);

#[derive(Default)]
struct Samples {
    foreign: Vec<Duration>,
    invented: Vec<Duration>,
}

/// The medians of one kind of request.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How many of each.
    pub samples: usize,
    /// Until an answer about another owner's id.
    pub foreign: Duration,
    /// Until an answer about an id that never was.
    pub invented: Duration,
}

impl Timing {
    /// How many times as long as about an invented id it took to answer about a foreign one.
    pub fn ratio(&self) -> f64 {
        self.foreign.as_secs_f64() / self.invented.as_secs_f64()
    }
}

impl Timings {
    pub(super) fn add(&self, what: &'static str, foreign: Duration, invented: Duration) {
        let mut all = self.0.lock().unwrap();
        let samples = all.entry(what).or_default();
        samples.foreign.push(foreign);
        samples.invented.push(invented);
    }

    pub(super) fn pairs(&self) -> usize {
        self.0.lock().unwrap().values().map(|samples| samples.foreign.len()).sum()
    }

    pub(super) fn medians(&self) -> Vec<(&'static str, Timing)> {
        let all = self.0.lock().unwrap();
        let timing = |(what, samples): (&&'static str, &Samples)| {
            let timing = Timing {
                samples: samples.foreign.len(),
                foreign: median(&samples.foreign),
                invented: median(&samples.invented),
            };
            (*what, timing)
        };
        all.iter().map(timing).collect()
    }
}

fn median(samples: &[Duration]) -> Duration {
    let mut sorted = samples.to_vec();
    sorted.sort();
    sorted[sorted.len() / 2]
}
