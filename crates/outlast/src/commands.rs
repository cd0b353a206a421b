//! One file for each command.

mod serve;
mod worker;
pub(crate) mod own_processes;
mod signals;

mod research;
mod run;
mod step;
mod ask;
mod engine;
mod ui_page;
mod upgrade;
mod start;
mod follow;
mod left_worker;
mod call;
mod wrap;
mod job_view;
mod jobs;
mod conversations;
mod find;
mod spend;
mod logs;
mod check;
mod store;

mod doctor;
mod init;
mod wrap_install;
mod config;
mod completions;
mod explain;

mod demo;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use outlast_mirror::Mirror;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cli::{Cli, Command, Global};
use crate::config::settings::{self, Setting};
use crate::config::{Config, ConfigError, Flags};
use crate::detached::own_jobs::OwnJobs;
use crate::error::{CommandError, CommandResult, OrUsage as _, refuse};
use crate::logging::{self, Relay};

/// Runs the command of the command line.
pub(crate) fn run(cli: Cli) -> CommandResult {
    let Cli { global, command } = cli;
    if matches!(command, Command::Guard) {
        return Ok(own_processes::guard());
    }
    let mut runtime = match &command {
        // Both processes of `wrap` only relay. One thread does that without waking another one for each message.
        Command::Wrap(_) => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(async {
        match command {
            Command::Serve(args) => serve::run(&global, args).await,
            Command::Worker(args) => worker::run(&global, args).await,
            Command::Research(args) => research::run(&global, args).await,
            Command::Run(args) => run::run(&global, args).await,
            Command::Call(args) => call::run(&global, args).await,
            Command::Wrap(args) => wrap::run(&global, args).await,
            Command::Store(command) => store::run(&global, command).await,
            Command::Step(args) => step::run(&global, args).await,
            Command::Ask(args) => ask::run(args).await,
            Command::Jobs(command) => jobs::run(&global, command).await,
            Command::Conversations(command) => conversations::run(&global, command).await,
            Command::Ui { no_open, all } => ui_page::run(&global, no_open, all).await,
            Command::Logs(args) => logs::run(&global, args).await,
            Command::Check(args) => check::run(&global, args).await,
            Command::Spend(args) => spend::run(&global, args).await,
            Command::Doctor(args) => doctor::run(&global, args).await,
            Command::Init(args) => init::run(&global, args),
            Command::Config(command) => config::run(&global, command),
            Command::Completions { shell } => completions::run(shell),
            Command::Man { dir } => completions::man(dir),
            Command::Explain { code } => explain::run(code),
            Command::Version => completions::version(),
            Command::Upgrade { check: _ } => upgrade::check(),
            Command::Demo => demo::run().await,
            Command::Guard => Ok(own_processes::guard()),
            Command::Simulate { options } => simulator_moved(&options),
        }
    });
    // A thread may still be blocked in a read of standard input; nothing waits for it.
    runtime.shutdown_background();
    done
}

/// Refuses `outlast simulate`, which was in releases up to 0.1.
fn simulator_moved(options: &[String]) -> CommandResult {
    let options: String = options.iter().map(|option| format!(" {option}")).collect();
    let separator = if options.is_empty() { "" } else { " --" };
    refuse(
        "the simulated provider is not part of outlast any more: it is the program outlast-simulator of its source",
        format!(
            "in a checkout of the source, `cargo run -p outlast-simulator{separator}{options}`"
        ),
    )
}

/// A setting, the flag that sets it, and the value if the flag is given.
type FlagValue = (&'static Setting, &'static str, Option<String>);

/// Loads the configuration with these flags.
fn load_config(global: &Global, flags: &[FlagValue]) -> CommandResult<Config> {
    Config::load(flags_of(global, flags)?).map_err(explain_config_error)
}

/// Returns the error for an unusable configuration, with a correct value.
fn explain_config_error(error: ConfigError) -> CommandError {
    let hint = error.hint();
    CommandError::usage(error, hint)
}

/// Returns the configuration's values from the command line.
fn flags_of(global: &Global, flags: &[FlagValue]) -> CommandResult<Flags> {
    let text = |dir: &PathBuf| {
        let text = dir.to_str().map(str::to_owned);
        text.with_context(|| format!("--data-dir = `{}` is not UTF-8", dir.display()))
            .or_usage("give a directory whose name is UTF-8")
    };
    let of_all = [
        (settings::STORE_URL, "--store", global.store.clone()),
        (settings::STORE_DATA_DIR, "--data-dir", global.data_dir.as_ref().map(text).transpose()?),
        (settings::STORE_MIRROR, "--no-mirror", global.no_mirror.then(|| "false".to_owned())),
    ];
    let given = flags.iter().cloned().chain(of_all);
    let values = given.filter_map(|(key, flag, value)| Some((key, flag, value?))).collect();
    Ok(Flags { config: global.config.clone(), values })
}

/// Starts the log of a command that prints its own messages: errors only, unless the user asks for more.
fn start_quiet_log(global: &Global, config: &Config) -> CommandResult<()> {
    let filter = if config.log_is_set { &config.log } else { "error" };
    start_log_at(global, config, filter, Relay::None)
}

/// The task that writes conversations as files, if they are written.
struct MirrorTask {
    task: Option<JoinHandle<()>>,
    stop: CancellationToken,
}

impl MirrorTask {
    fn spawn(mirror: Option<&Arc<Mirror>>) -> Self {
        let stop = CancellationToken::new();
        let task = mirror.map(|mirror| {
            let (mirror, stop) = (Arc::clone(mirror), stop.clone());
            outlast_engine::spawn(async move { mirror.run(stop).await })
        });
        Self { task, stop }
    }

    /// Writes the last states and ends. Called after the workers have left, so that the files show their final work.
    async fn finish(self) {
        self.stop.cancel();
        if let Some(task) = self.task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the last states of conversations were not written to their files");
        }
    }
}

/// Starts the log for a command.
fn start_log(global: &Global, config: &Config) -> CommandResult<()> {
    start_log_at(global, config, &config.log, Relay::None)
}

/// Starts the log of a server, which also has the lines of detached workers about its jobs.
fn start_server_log(
    global: &Global,
    config: &Config,
    own_jobs: &Arc<OwnJobs>,
) -> CommandResult<()> {
    start_log_at(global, config, &config.log, Relay::FromWorkers(Arc::clone(own_jobs)))
}

fn start_log_at(global: &Global, config: &Config, filter: &str, relay: Relay) -> CommandResult<()> {
    logging::start(std::io::stderr, global, filter, config.log_format, relay).map_err(|why| {
        let why = format!("the log filter `{}` cannot be read: {why}", config.log);
        CommandError::wrong(why, "set OUTLAST_LOG to error, warn, info, debug or trace")
    })?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    Ok(())
}
