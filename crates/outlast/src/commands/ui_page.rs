//! `outlast ui`: the page for the person at this machine. A server on loopback with only the page, opened by a link
//! that works once (I1, I8).

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use outlast_core::{Job, Profile};
use outlast_engine::{LeaveTime, Providers, Worker, WorkerRole};
use outlast_server::{
    Callers, Carry, Face, Hosts, HttpOptions, Origins, PageEntry, PageOptions, PageResearch,
    PageView, Rates, Room, Routes, Server, Tokens, TrustedProxies, serve_http,
};
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::MirrorTask;
use super::engine::{CommandSession, with_engine};
use super::left_worker;
use super::signals::stop_on_signals;
use crate::cli::Global;
use crate::config::{CitationChecks, Config, StoreUrl};
use crate::error::{CommandResult, DONE};
use crate::open_store::OpenStore;
use crate::ui;
use crate::wire::research_providers;

/// Requests per minute: one browser with some tabs.
const RATE: NonZeroU32 = NonZeroU32::new(3_000).unwrap();
const STRANGERS: NonZeroU32 = NonZeroU32::new(60).unwrap();
/// The folder in the data directory for files that open the page.
const LINKS: &str = "page-links";
/// The age of a file that no longer opens anything: a link is valid for a minute.
const OLD_FILE: Duration = Duration::from_secs(120);
/// Only the page is served, so there are no MCP sessions.
const SESSION_IDLE: Duration = Duration::from_secs(60);

pub(super) async fn run(global: &Global, no_open: bool, all: bool) -> CommandResult {
    let config = super::load_config(global, &[])?;
    super::start_quiet_log(global, &config)?;
    let providers = research_providers(&config)?;
    let profiles: Vec<Profile> = providers.iter().map(|(profile, _)| profile.clone()).collect();
    let providers: Providers = providers.into_iter().collect();
    let store = OpenStore::open(&config).await?;
    with_engine(global, &config, store, providers, async |session| {
        let CommandSession { engine, stop, .. } = session;
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listen on this machine")?;
        let address = listener.local_addr().context("find the port")?;
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(std::io::Error::other).context("make a link")?;
        let (entry, code) = PageEntry::new(config.owner.clone(), &secret);
        let spent = entry.sum_spend();
        let (carry, started) = unbounded_channel();
        let carry = Arc::new(move |job: Job| -> futures_util::future::BoxFuture<'static, ()> {
            // Fails only after the page has ended.
            drop(carry.send(job));
            Box::pin(async {})
        });
        let page = PageOptions {
            view: if all { PageView::AllOwners } else { PageView::Own },
            entry: Some(entry),
            ..page_options(&config, &profiles, carry)
        };
        let options = HttpOptions {
            routes: Routes::All,
            // No tokens: the link is the only way in, and MCP is not served.
            callers: Callers::WithToken(Tokens::default()),
            oauth: None,
            hosts: Hosts::loopback(),
            origins: Origins::default(),
            trusted_proxies: TrustedProxies::default(),
            rates: Rates { per_owner: RATE, strangers: STRANGERS },
            session_idle: SESSION_IDLE,
            room: Room::default(),
            page,
        };
        outlast_engine::spawn(stop_on_signals(stop.clone())?);
        let mirror_task = MirrorTask::spawn(session.mirror.as_ref());
        // No other process can work on a store that ends with this one.
        let is_memory = config.store == StoreUrl::Memory;
        let worker = is_memory.then(|| {
            outlast_engine::spawn(Worker::new(engine, WorkerRole::TheQueue).run(LeaveTime::Asked))
        });
        let link = format!("http://{address}/ui/enter?code={code}");
        ui::line(&link);
        ui::print_waiting(
            "The link is good once and for a minute. Ctrl-C ends the page; jobs go on.",
        );
        let data_dir = config.data_dir.clone();
        let opened = async move {
            // Kept until the browser was redirected or the link is worthless.
            let _file = if no_open { None } else { open(&data_dir, &link) };
            spent.await;
        };
        let opened = outlast_engine::spawn(opened);
        let face = Face::new(config.owner.clone(), engine.clone(), Vec::new());
        let server = Server::new(face);
        tokio::select! {
            () = serve_http(server, options, listener, stop.clone()) => {}
            () = keep_carried(session, started) => {}
            () = engine.keep_finding_dead_workers() => {}
        }
        stop.ask();
        // Drops the file, which removes it if it still exists.
        opened.abort();
        drop(opened.await);
        if let Some(worker) = worker {
            drop(worker.await);
        }
        mirror_task.finish().await;
        DONE
    })
    .await
}

/// Returns the configuration of the page, here and under `outlast serve --http`, where owners sign in with their
/// tokens.
pub(super) fn page_options(config: &Config, profiles: &[Profile], carry: Carry) -> PageOptions {
    let checks = (config.citations.check != CitationChecks::Never).then(|| Arc::clone(&carry));
    let research = (!profiles.is_empty()).then(|| PageResearch {
        profiles: profiles.to_vec(),
        max_failures: config.perplexity.max_job_retries,
        attempt_timeout: config.perplexity.polling_timeout,
        life: config.perplexity.async_max_wait,
        carry,
    });
    PageOptions { research, checks, limits: config.spend_limits, view: PageView::Own, entry: None }
}

/// Makes sure that a worker continues each job that the page starts, for as long as the page is served.
async fn keep_carried(session: &CommandSession<'_>, mut started: UnboundedReceiver<Job>) {
    while let Some(job) = started.recv().await {
        if let Err(failed) = left_worker::ensure(session, &[], &job).await {
            // The job stays, and its page says that no worker fits it.
            ui::error(&failed);
        }
    }
    std::future::pending().await
}

/// Asks the desktop for a browser; without one the link can be copied. The browser gets a file that redirects to the
/// link, because every user of this machine can read the arguments of a program. Returns the file; dropping it removes
/// it.
fn open(data_dir: &Path, link: &str) -> Option<NamedTempFile> {
    let file = match redirect_file(data_dir, link) {
        Ok(file) => file,
        Err(error) => {
            tracing::warn!(%error, "failed to write the file that opens the page; open the link yourself");
            return None;
        }
    };
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut browser = Command::new(program);
    browser.arg(file.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = browser.spawn() {
        // It exits as soon as the browser has the file.
        std::thread::spawn(move || drop(child.wait()));
    }
    Some(file)
}

/// Writes an HTML file that only this user can read and that redirects to the link.
fn redirect_file(data_dir: &Path, link: &str) -> std::io::Result<NamedTempFile> {
    let folder = data_dir.join(LINKS);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))?;
    remove_old_files(&folder);
    // Created with mode 0600 under a name that did not exist.
    let mut file = tempfile::Builder::new().prefix("open-").suffix(".html").tempfile_in(&folder)?;
    write!(
        file,
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0;url={link}\">\n<title>outlast</title>\n\
         <p><a href=\"{link}\">Open outlast</a></p>\n"
    )?;
    file.flush()?;
    Ok(file)
}

/// Removes the files of processes that were killed; their links are worthless.
fn remove_old_files(folder: &Path) {
    let Ok(files) = std::fs::read_dir(folder) else { return };
    for file in files.flatten() {
        let age = file.metadata().and_then(|it| it.modified()).map(|at| at.elapsed());
        if matches!(age, Ok(Ok(age)) if age > OLD_FILE) {
            drop(std::fs::remove_file(file.path()));
        }
    }
}
