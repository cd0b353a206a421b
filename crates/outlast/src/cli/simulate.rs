//! The command line of `outlast simulate`.

use clap::{Args, ValueEnum};

/// What `outlast simulate --help` ends with.
pub(super) fn scenarios() -> String {
    format!(
        "Examples:\n  outlast simulate --port 9000 --speed 10\n\nWhat may stand between [[sim: and ]], several \
         clauses separated by |:\n\n{}",
        outlast_simulator::GUIDE
    )
}

/// `outlast simulate`
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The port on 127.0.0.1; 0 takes any
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,
    /// How many times faster than life it goes
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub(crate) speed: f64,
    /// Changes the reports; the same seed gives the same ones
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Whether the Sonar endpoints still work; the vendor retired them
    #[arg(long, value_name = "STATE", value_enum, default_value_t)]
    pub(crate) sonar: SonarState,
    /// What delays are measured by; a virtual clock moves only by POST /__sim/advance
    #[arg(long, value_name = "CLOCK", value_enum, default_value_t)]
    pub(crate) clock: SimulatedClock,
}

/// `--sonar`
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum SonarState {
    /// Answer 403, as the vendor does
    #[default]
    Retired,
    /// Answer as before
    Live,
}

/// `--clock`
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum SimulatedClock {
    /// The time that passes
    #[default]
    Real,
    /// Standing still until moved
    Virtual,
}
