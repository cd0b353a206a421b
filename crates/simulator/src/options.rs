//! How to run a simulator.

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
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            speed: 1.0,
            seed: 0,
            sonar: SonarMode::default(),
            clock: ClockMode::default(),
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
    /// A clock that stands still until [`Simulator::advance`](crate::Simulator::advance) or `POST /__sim/advance` moves it.
    Virtual,
}
