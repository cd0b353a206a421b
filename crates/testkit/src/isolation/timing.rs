//! The response times for foreign and for invented ids.

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

/// The median times of one kind of request.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The number of requests of each kind.
    pub samples: usize,
    /// The time of an answer about another owner's id.
    pub foreign: Duration,
    /// The time of an answer about an id that never existed.
    pub invented: Duration,
}

impl Timing {
    /// The time for a foreign id divided by the time for an invented one.
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
