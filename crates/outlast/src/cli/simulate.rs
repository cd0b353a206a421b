//! The command line of `outlast simulate`.

use clap::Args;

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
    #[arg(long, value_name = "STATE", value_parser = ["retired", "live"], default_value = "retired")]
    pub(crate) sonar: String,
    /// What delays are measured by; a virtual clock moves only by POST /__sim/advance
    #[arg(long, value_name = "CLOCK", value_parser = ["real", "virtual"], default_value = "real")]
    pub(crate) clock: String,
}
