//! One job as it is shown: to people, to scripts, and to the shell when it has ended. Every command that shows a job does it
//! from here.

pub(super) mod show;
pub(super) mod json;
pub(super) mod outcome;
