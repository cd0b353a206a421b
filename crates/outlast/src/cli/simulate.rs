//! The command line of `outlast simulate`.

use clap::Args;

use super::word;

/// Returns the end of the output of `outlast simulate --help`.
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
    #[arg(long, value_name = "STATE", default_value = "retired")]
    #[arg(value_parser = [
        word("retired", "Answer 403, as the vendor does"),
        word("live", "Answer as before"),
    ])]
    pub(crate) sonar: String,
    /// What delays are measured by; a virtual clock moves only by POST /__sim/advance
    #[arg(long, value_name = "CLOCK", default_value = "real")]
    #[arg(value_parser = [
        word("real", "The time that passes"),
        word("virtual", "Standing still until moved"),
    ])]
    pub(crate) clock: String,
}
