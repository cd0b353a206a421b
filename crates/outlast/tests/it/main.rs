//! The real binary: over real pipes, on real files, killed for real.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod support;

mod anthropic;
mod app;
mod approving;
mod arguments;
mod audit;
mod call;
mod cancelled_runs;
mod check;
mod cli;
mod config_show;
mod converters;
mod crash;
mod data_dir;
mod demo;
mod detached;
mod doctor;
mod documents;
mod elsewhere;
mod providers;
mod proxy;
mod errors;
mod exposure;
mod faults;
mod hanging;
mod http;
mod idle;
mod page;
mod isolation;
mod limits;
mod links;
mod jobs;
mod init;
mod wrap_install;
mod mirror;
mod money;
mod vendors;
mod requirements;
mod research;
mod researcher;
mod research_jobs;
mod notify;
mod operating;
mod packaging;
mod partial;
mod perplexity;
mod postgres;
mod postgres_links;
mod tasks;
mod tasks_2025;
mod notified;
mod old_store;
mod resources;
mod restoring;
mod secrets;
mod sharing;
mod sonar;
mod spending;
mod postgres_store;
mod postgres_restored;
mod standing;
mod upkeep;
mod workflows_alone;
mod wrap;
