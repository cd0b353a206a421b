//! Checks of this machine that need no store: configuration, ports, clients.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use clap::ValueEnum as _;

use super::check::Check;
use crate::cli::Client;
use crate::commands::init::{self, ClientSetup};
use crate::commands::wrap_install::{self, ListedServer};
use crate::config::{ConfigError, ConfigResult, Places, ShownConfig, ValueSource};
use crate::data_dir;
use crate::ui;

/// The port of the examples.
const PORT: u16 = 8080;

/// Checks that the configuration can be used, and reports its source.
pub(super) fn configuration(showing: &ConfigResult<ShownConfig>, places: Option<&Places>) -> Check {
    let usable = showing.as_ref().and_then(|showing| Ok((showing, showing.config.as_ref()?)));
    let unusable = |error: &ConfigError| Check::fail(error.to_string(), error.hint());
    let (showing, config) = match usable {
        Ok(usable) => usable,
        Err(error) => return unusable(error),
    };
    if let Err(error) = config.http.tokens.read() {
        return unusable(&error);
    }
    let (mut lines, mut fixes): (Vec<_>, Vec<_>) =
        open_to_others(showing, places).into_iter().unzip();
    if !config.warnings.is_empty() {
        lines.extend(config.warnings.iter().cloned());
        fixes.push("`outlast config show` lists every value and its source".to_owned());
    }
    if !lines.is_empty() {
        return Check::warn(lines.join("; "), fixes.join("; "));
    }
    let file = showing.file.as_ref().map(|file| match places {
        Some(places) => places.short(file),
        None => file.display().to_string(),
    });
    let (mut variables, mut flags) = (Vec::new(), Vec::new());
    for shown in &showing.settings {
        match shown.source {
            ValueSource::Variable(name) => variables.push(name),
            ValueSource::Flag(name) => flags.push(name),
            ValueSource::File(_) | ValueSource::Default => {}
        }
    }
    let none = if file.is_none() { "; there is no file" } else { "" };
    let parts = [file.unwrap_or_default(), variables.join(", "), flags.join(", ")];
    let from: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    match from.is_empty() {
        true => Check::pass(format!("all defaults{none}")),
        false => Check::pass(format!("from {}{none}", from.join("; "))),
    }
}

/// Returns the mistake in the permissions to write the file, or to read it if it holds a secret, and the remedy.
fn open_to_others(showing: &ShownConfig, places: Option<&Places>) -> Option<(String, String)> {
    let file = showing.file.as_ref()?;
    let mode = std::fs::metadata(file).ok()?.permissions().mode();
    let shown = places.map_or_else(|| file.display().to_string(), |places| places.short(file));
    if mode & 0o022 != 0 {
        let line = format!("others may write {shown}, and with it decide what is run here");
        return Some((line, format!("chmod go-w {}", file.display())));
    }
    if mode & 0o044 != 0 && showing.file_has_secrets {
        let line = format!("others may read {shown}, which holds a key, a token or a password");
        return Some((line, format!("chmod 600 {}", file.display())));
    }
    None
}

/// Checks that no other user can change the content of the data directory.
pub(super) fn data_dir(path: &Path) -> Check {
    match data_dir::judge(path) {
        Err(found) => Check::fail(format!("{found}: nothing is written there"), found.fix()),
        Ok(()) if !path.exists() => Check::pass(format!("{} will be made", path.display())),
        Ok(()) => Check::pass(format!("only you can write {}", path.display())),
    }
}

/// Checks that wrapped servers describe their tools as before.
pub(super) fn tools(data_dir: &Path) -> Check {
    let changes = outlast_wrap::recent_tool_changes(data_dir);
    let shown = changes.iter().map(|(change, age)| format!("{change} ({} ago)", ui::ago(*age)));
    let lines: Vec<String> = shown.collect();
    match lines.is_empty() {
        true => Check::pass("no wrapped server changed its tools in the last 30 days"),
        false => Check::warn(
            lines.join("; "),
            "a model follows descriptions: make sure that you trust the new ones, or remove the server",
        ),
    }
}

/// Reports the built-in SQLite.
pub(super) fn sqlite() -> Check {
    Check::pass(format!("SQLite {}, built in", outlast_store::sqlite_version()))
}

/// Checks that this machine's own address can be listened on.
pub(super) fn ports() -> [Check; 1] {
    if let Err(error) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) {
        let fix = "only `serve --http`, `ui` and `demo` need it: allow listening on 127.0.0.1";
        return [Check::warn(format!("127.0.0.1 cannot be listened on: {error}"), fix)];
    }
    let state = match TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)) {
        Ok(_) => "free",
        Err(_) => "taken, so give `serve --http` another",
    };
    [Check::pass(format!("127.0.0.1 can be listened on; port {PORT} is {state}"))]
}

/// Checks that the configured clients run an existing program.
pub(super) fn clients(places: Option<&Places>) -> [Check; 1] {
    let Some(places) = places else {
        return [Check::skip("there is no home directory to look in")];
    };
    let (mut set_up, mut without) = (Vec::new(), Vec::new());
    for &client in Client::value_variants() {
        match init::look(client, places) {
            ClientSetup::NoFile => {}
            ClientSetup::NotSetUp => without.push(client.id()),
            ClientSetup::Runs(command) if is_there(&command) => set_up.push(client.id()),
            ClientSetup::Runs(command) => {
                let line = format!("{} runs `{command}`, which is not there", client.id());
                return [Check::warn(line, format!("outlast init {}", client.id()))];
            }
            ClientSetup::Unreadable(why) => {
                let file = places.short(&client.file(places));
                let line = format!("{file} cannot be read: {why}");
                let fix = format!("correct it; {} cannot read it either", client.id());
                return [Check::warn(line, fix)];
            }
        }
    }
    [match (set_up.as_slice(), without.first()) {
        ([], Some(client)) => {
            let line = format!("found {}; none is set up", without.join(", "));
            Check::warn(line, format!("outlast init {client}"))
        }
        ([], None) => {
            let known: Vec<_> = Client::value_variants().iter().map(|it| it.id()).collect();
            Check::skip(format!("none of {} is used here", known.join(", ")))
        }
        (_, None) => Check::pass(format!("set up: {}", set_up.join(", "))),
        (_, Some(_)) => {
            Check::pass(format!("set up: {}; not: {}", set_up.join(", "), without.join(", ")))
        }
    }]
}

/// Returns the servers of every client, and marks those that go through wrap.
pub(super) fn servers(places: Option<&Places>) -> Vec<(Client, Vec<ListedServer>)> {
    let listed = |places| {
        let of = |client: &Client| (*client, wrap_install::list(*client, places));
        Client::value_variants().iter().map(of).filter(|(_, listed)| !listed.is_empty()).collect()
    };
    places.map(listed).unwrap_or_default()
}

/// Checks that the wrapped servers run an existing wrap.
pub(super) fn check_wrapped(servers: &[(Client, Vec<ListedServer>)]) -> Check {
    let mut lines = Vec::new();
    for (client, listed) in servers {
        let mut names = Vec::new();
        for ListedServer { name, wrapped_by } in listed {
            match wrapped_by {
                None => names.push(name.clone()),
                Some(program) if is_there(program) => names.push(format!("{name} (wrapped)")),
                Some(program) => {
                    let id = client.id();
                    let line =
                        format!("{name} of {id} goes through `{program}`, which is not there");
                    return Check::warn(line, format!("outlast wrap --install {id} {name}"));
                }
            }
        }
        lines.push(format!("{}: {}", client.id(), names.join(", ")));
    }
    match lines.is_empty() {
        true => Check::skip("no client has a server that could go through `outlast wrap`"),
        false => Check::pass(lines.join("; ")),
    }
}

/// Returns true if the command exists. The client searches a name without a folder in its own PATH, which is unknown
/// here.
fn is_there(command: &str) -> bool {
    !command.contains('/') || Path::new(command).is_file()
}
