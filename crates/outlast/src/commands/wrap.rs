//! `outlast wrap`: a front on the client's pipe, or, started by a front, the host process that owns the server.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use clap::ValueEnum as _;
use outlast_client::Endpoint;
use outlast_core::OwnerId;
use outlast_engine::{Engine, Providers, Shutdown};
use outlast_provider::command::Guard;
use outlast_wrap::front::{self, FrontOptions};
use outlast_wrap::host::{self, ServerCommand};
use outlast_wrap::{CallRows, HostIdentity, HostOptions, WrapSettings};
use tokio::sync::OnceCell;

use super::call::{endpoint, variable};
use super::engine::CommandSession;
use super::wrap_install;
use crate::cli::{Global, WrapArgs};
use crate::config::{Config, wrap_environment};
use crate::data_dir;
use crate::error::{CommandResult, DONE, OrUsage as _, refuse};
use crate::kill_points::KillPoint;
use crate::logging::Relay;
use crate::open_store::{OpenStore, check_owner, check_path_length, options};
use crate::wait_command::wait_command;
use crate::wire::own_program;

/// The time that a host process without a client waits for it to come back.
const IDLE: Duration = Duration::from_secs(60);
/// The time for which calls continue without a client before they are given up.
const GIVE_UP: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) async fn run(global: &Global, args: WrapArgs) -> CommandResult {
    if args.keeper {
        return keep(global, args).await;
    }
    if args.install.requested_change().is_some() {
        return wrap_install::run(global, args.install);
    }
    if args.program.is_empty() && !has_address(&args) {
        let hint = "give its command after `--`: `outlast wrap -- CMD...`";
        return refuse("no server is given", hint);
    }
    let config = super::load_config(global, &[])?;
    check_owner(&config)?;
    data_dir::prepare(&config.data_dir)?;
    // The host process could report it to nobody.
    data_dir::prepare_below(&config.data_dir, "wrap")?;
    check_path_length(&config.store)?;
    let identity = identity(&args)?;
    // A mistake in it is reported before anything is started.
    server_at(global, &args)?;
    let log = config.data_dir.join("wrap.log");
    let open_log = Box::new(move || {
        data_dir::open_log(&log).map_err(|error| {
            std::io::Error::new(error.kind(), format!("{}: {error}", log.display()))
        })
    });
    let settings = settings(&config, &args)?;
    let options = FrontOptions {
        settings,
        identity,
        data_dir: config.data_dir.clone(),
        program: own_program()?,
        arguments: host_arguments(global, &args),
        first_arguments: arm(args.kill_at),
        open_log,
    };
    let code = front::run(options).await.context("keep the server in its own process")?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn has_address(args: &WrapArgs) -> bool {
    args.url.is_some() || args.url_env.is_some()
}

/// Returns the address of the server, if it is not a program.
fn address(args: &WrapArgs) -> CommandResult<Option<String>> {
    match &args.url_env {
        Some(name) => variable(name).map(Some),
        None => Ok(args.url.clone()),
    }
}

fn settings(config: &Config, args: &WrapArgs) -> CommandResult<WrapSettings> {
    let program = args.program.first().map(std::path::Path::new);
    let program = program.and_then(std::path::Path::file_name).unwrap_or_default();
    let host = address(args)?.and_then(|url| url.split('/').nth(2).map(str::to_owned));
    let name = args.name.clone().or(host);
    let name = name.unwrap_or_else(|| program.to_string_lossy().into_owned());
    let after = args.after.unwrap_or(config.wrap.after);
    Ok(WrapSettings { name, after, wait: wait_command(config), ..config.wrap.clone() })
}

/// Returns the identity that a host process and a front must share: the command, the folder, the environment.
fn identity(args: &WrapArgs) -> CommandResult<HostIdentity> {
    let folder = std::env::current_dir().context("find the working directory")?;
    let environment = wrap_environment();
    let headers = args.header.iter().chain(&args.header_env).chain(&args.bearer_env);
    let address = args.url.iter().chain(&args.url_env).chain(headers);
    let address = address.map(String::as_bytes);
    let command = args.program.iter().map(|part| part.as_bytes()).chain(address);
    let pairs = environment.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    let folder = folder.as_os_str().as_bytes();
    Ok(HostIdentity::from_parts(command.chain([b"".as_slice(), folder]).chain(pairs)))
}

/// Returns the identity of the server for data that is kept between starts: the command or address, and the folder.
fn server(args: &WrapArgs) -> CommandResult<HostIdentity> {
    let folder = std::env::current_dir().context("find the working directory")?;
    let address = args.url.iter().chain(&args.url_env).map(String::as_bytes);
    let command = args.program.iter().map(|part| part.as_bytes()).chain(address);
    Ok(HostIdentity::from_parts(command.chain([b"".as_slice(), folder.as_os_str().as_bytes()])))
}

/// Returns the same flags and the same command for the host process. The store's address is shown only to users who can
/// already see it.
fn host_arguments(global: &Global, args: &WrapArgs) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["wrap".into(), "--keeper".into()];
    arguments.extend(global.passed_on().flat_map(|(flag, value)| [flag.into(), value]));
    let flags = [
        ("--url", args.url.as_ref().map(OsString::from)),
        ("--url-env", args.url_env.as_ref().map(OsString::from)),
        ("--bearer-env", args.bearer_env.as_ref().map(OsString::from)),
        ("--idle-ms", args.idle_ms.map(|idle| idle.to_string().into())),
        ("--give-up-ms", args.give_up_ms.map(|limit| limit.to_string().into())),
    ];
    for (flag, value) in flags {
        arguments.extend(value.into_iter().flat_map(|value| [flag.into(), value]));
    }
    for header in &args.header {
        arguments.extend(["--header".into(), header.into()]);
    }
    for header in &args.header_env {
        arguments.extend(["--header-env".into(), header.into()]);
    }
    if !has_address(args) {
        arguments.push("--".into());
        arguments.extend(args.program.iter().cloned());
    }
    arguments
}

/// Returns the arguments for the first host process only.
fn arm(point: Option<KillPoint>) -> Vec<OsString> {
    let name = point.and_then(|point| Some(point.to_possible_value()?.get_name().to_owned()));
    name.into_iter().flat_map(|name| ["--kill-at".into(), name.into()]).collect()
}

/// Returns the address of the server, if it is not a program.
fn server_at(global: &Global, args: &WrapArgs) -> CommandResult<Option<Endpoint>> {
    let Some(url) = address(args)? else { return Ok(None) };
    let mut headers = args.header.clone();
    for header in &args.header_env {
        let pair = header.split_once('=').context("--header-env has no =");
        let (name, from) = pair.or_usage("write it as Name=VARIABLE")?;
        headers.push(format!("{name}: {}", variable(from)?));
    }
    endpoint(global, &url, &headers, args.bearer_env.as_deref()).map(Some)
}

/// Runs the host process.
async fn keep(global: &Global, args: WrapArgs) -> CommandResult {
    // Fails only if this process already leads a session.
    let _ = rustix::process::setsid();
    let config = host_config(global)?;
    let level = if config.log_is_set { config.log.clone() } else { "warn".to_owned() };
    super::start_log_at(global, &config, &level, Relay::None)?;
    data_dir::prepare(&config.data_dir)?;
    let (identity, server) = (identity(&args)?, server(&args)?);
    let endpoint = server_at(global, &args)?;
    let mut program = args.program.into_iter();
    let name = program.next().unwrap_or_default();
    let guard = Arc::new(Guard::new(own_program()?, vec!["guard".into()]));
    let released = Arc::clone(&guard);
    let watch = move |pid| {
        if let Err(error) = guard.watch_leader(pid) {
            tracing::error!(%error, "the server would outlive this process if that were killed");
        }
    };
    let command = ServerCommand {
        endpoint,
        program: name,
        arguments: program.collect(),
        watch: Arc::new(watch),
        release: Arc::new(move |pid| released.release_leader(pid)),
    };
    let data_dir = config.data_dir.clone();
    let idle = args.idle_ms.map_or(IDLE, Duration::from_millis);
    let give_up = args.give_up_ms.map_or(GIVE_UP, Duration::from_millis);
    let kill_at = args.kill_at;
    let rows = Arc::new(ConfiguredRows { config, kill_at, store: OnceCell::new() });
    let options = HostOptions { command, identity, server, data_dir, rows, idle, give_up };
    host::run(options).await.context("keep the server")?;
    DONE
}

/// Ends the wrapped calls whose host processes were killed. Best effort: on an error, jobs are shown as they are stored.
pub(super) async fn end_left_calls(session: &CommandSession<'_>) {
    if let Err(error) = try_to_end_left_calls(session).await {
        tracing::warn!(error, "failed to end the calls of host processes that were killed");
    }
}

async fn try_to_end_left_calls(session: &CommandSession<'_>) -> Result<(), String> {
    let hosts = outlast_wrap::killed_hosts(&session.engine, &session.own()).await?;
    if hosts.is_empty() {
        return Ok(());
    }
    let config = host_config(session.global).map_err(|error| error.to_string())?;
    let rows = ConfiguredRows { config, kill_at: None, store: OnceCell::new() };
    for host in &hosts {
        outlast_wrap::end_calls(host, &rows).await?;
    }
    Ok(())
}

/// Reads the configuration of a host process.
fn host_config(global: &Global) -> CommandResult<Config> {
    let mut config = super::load_config(global, &[])?;
    // A wrapped call is not a turn of a conversation.
    config.conversation_logs = None;
    Ok(config)
}

/// The configured store, opened for the first call that is stored.
struct ConfiguredRows {
    config: Config,
    kill_at: Option<KillPoint>,
    store: OnceCell<OpenStore>,
}

#[async_trait]
impl CallRows for ConfiguredRows {
    async fn engine(&self, providers: Providers, stop: Shutdown) -> Result<Engine, String> {
        let open = async || {
            let opened = OpenStore::open(&self.config).await;
            opened.map(|store| store.with_kill_point(self.kill_at))
        };
        let opened = self.store.get_or_try_init(open).await;
        let store = opened.map_err(|error| error.to_string())?;
        let opened = store.engine(&self.config, options(&self.config), providers, stop).await;
        opened.map(|opened| opened.engine).map_err(|error| error.to_string())
    }

    fn owner(&self) -> OwnerId {
        self.config.owner.clone()
    }

    fn keep(&self) -> Duration {
        self.config.job_ttl
    }

    async fn close(&self) {
        // Every acknowledged write is durable; the process exits now.
    }
}
