//! The presentation of one job: to people, to scripts, and to the shell after its end. Every command that shows a job
//! uses it.

pub(super) mod show;
pub(super) mod json;
pub(super) mod outcome;
