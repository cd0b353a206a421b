/// The options of a simulator.
#[derive(Clone, Debug)]
pub struct Options {
    /// The port on 127.0.0.1; 0 selects a free one.
    pub port: u16,
    /// Divides all delays; must be above 0.
    pub speed: f64,
    /// A different seed gives different reports and ids.
    pub seed: u64,
    /// The state of the Sonar endpoints.
    pub sonar: SonarMode,
    /// The clock of all delays.
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

/// The state of the Sonar endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SonarMode {
    /// They answer 403, as the vendor does since September 2026.
    #[default]
    Retired,
    /// They answer and run jobs, as before.
    Live,
}

/// The clock of all delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockMode {
    /// Real time.
    #[default]
    Real,
    /// A clock that only [`Simulator::advance`](crate::Simulator::advance) or `POST /__sim/advance` moves.
    Virtual,
}
