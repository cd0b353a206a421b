//! How an accepted request becomes a run.

use tokio::sync::watch;

use crate::ask::{Api, Ask};
use crate::clock::Clock;
use crate::ids::{fnv1a64, uuid};
use crate::run::{Counts, Run};
use crate::scenario::{Ending, Scenario};
use crate::script::{Brief, Script, Style};
use crate::timeline::Timeline;
use crate::wall_clock;

/// What a new run depends on besides its request.
pub(crate) struct RunContext<'a> {
    pub(crate) seed: u64,
    pub(crate) clock: &'a Clock,
    /// How many runs the same input had before.
    pub(crate) earlier: u64,
    /// The number of this run among all.
    pub(crate) ordinal: u64,
}

/// Writes the run's script. Its text depends on seed, effort and input, its id also on how many runs came before.
pub(crate) fn run(ask: Ask, scenario: Scenario, context: &RunContext<'_>) -> Run {
    let seed = fnv1a64(&[&context.seed.to_le_bytes(), ask.label.as_bytes(), ask.input.as_bytes()]);
    let mut ids =
        fastrand::Rng::with_seed(fnv1a64(&[&seed.to_le_bytes(), &context.ordinal.to_le_bytes()]));
    let ending = match &scenario.ending {
        Ending::Fail { times: Some(times), .. } if context.earlier >= *times => &Ending::Completed,
        ending => ending,
    };
    let style = match &ask.api {
        Api::Agent => Style::Agent,
        Api::Sonar(sonar) => Style::Sonar { thinks: sonar.model.thinks() },
    };
    let script = Script::write(&Brief {
        question: &ask.question,
        effort: ask.effort,
        model: ask.model,
        shape: &scenario.shape,
        ending,
        hostile: scenario.inject.map(|inject| inject.line),
        style,
        seed,
        speed: context.clock.speed(),
    });
    let prefix = if matches!(ask.api, Api::Agent) { "resp_" } else { "" };
    Run {
        id: format!("{prefix}{}", uuid(&mut ids)),
        message_id: format!("msg_{}", uuid(&mut ids)),
        ask,
        timeline: Timeline::new(script),
        created_at: wall_clock::unix_seconds(),
        scenario,
        submitted_at: context.clock.now(),
        counts: Counts::default(),
        changed: watch::Sender::default(),
    }
}
