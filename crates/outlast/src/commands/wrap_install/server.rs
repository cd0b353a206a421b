//! The meaning of a server's entry: its program or address, and the outlast wrapper before it, if there is one.
//! Converts one into the other as a list of changes to members of the entry; does not access files.

use std::path::Path;

use clap::Parser as _;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::cli::{Cli, Client, Command};
use crate::client_files::layout::EntryField;
use crate::client_files::place::Change;

/// The variable in which a wrapped entry keeps its address.
const URL_VARIABLE: &str = "OUTLAST_WRAP_URL";
/// The prefix of the variables of the headers.
const HEADER_VARIABLE: &str = "OUTLAST_WRAP_HEADER_";
/// The members that hold an address, over all clients.
const ADDRESS_MEMBERS: [&str; 3] = ["url", "serverUrl", "httpUrl"];
/// Members of an address that only the client itself can act on.
const ONLY_THE_CLIENT: [&str; 6] =
    ["oauth", "auth", "authProviderType", "headersHelper", "oauth_resource", "scopes"];

/// The program or address of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerEntry {
    /// A program.
    Program { command: String, args: Vec<String> },
    /// An address.
    Address(ServerAddress),
    /// A server behind `outlast wrap`, which is this program.
    Wrapped { program: String, behind: Box<ServerEntry> },
    /// This program itself, which keeps its calls without help.
    Outlast,
}

/// An address and the headers for its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerAddress {
    url: String,
    /// Names and values.
    headers: Vec<(String, String)>,
    /// Names, and the variables that hold the values.
    header_variables: Vec<(String, String)>,
    /// The variable that holds a token.
    bearer_variable: Option<String>,
}

impl ServerEntry {
    /// Reads an entry; the error names the part that is not understood.
    pub(super) fn read(entry: &Value) -> Result<Self, String> {
        let Some(entry) = entry.as_object() else { return Err("it is no object".to_owned()) };
        match entry.get("command") {
            Some(Value::String(command)) => Self::read_program(entry, command),
            Some(_) => Err("its `command` is no text".to_owned()),
            None => ServerAddress::read(entry).map(Self::Address),
        }
    }

    fn read_program(entry: &Map<String, Value>, command: &str) -> Result<Self, String> {
        let args = texts(entry, "args")?;
        let is_outlast = Path::new(command).file_name().is_some_and(|name| name == "outlast");
        let word = args.iter().find(|arg| matches!(arg.as_str(), "wrap" | "serve"));
        match word.map(String::as_str) {
            Some("wrap") if is_outlast => {
                let behind = behind_wrap(entry, &args)?;
                Ok(Self::Wrapped { program: command.to_owned(), behind: Box::new(behind) })
            }
            Some("serve") if is_outlast => Ok(Self::Outlast),
            _ => Ok(Self::Program { command: command.to_owned(), args }),
        }
    }
}

/// Returns the server after these arguments of `outlast wrap`.
fn behind_wrap(entry: &Map<String, Value>, args: &[String]) -> Result<ServerEntry, String> {
    let words = std::iter::once("outlast").chain(args.iter().map(String::as_str));
    let Ok(Cli { command: Command::Wrap(wrap), .. }) = Cli::try_parse_from(words) else {
        return Err("its `args` are none that `outlast wrap` takes".to_owned());
    };
    let mut program = wrap.program.iter().map(|word| word.to_string_lossy().into_owned());
    if let Some(command) = program.next() {
        return Ok(ServerEntry::Program { command, args: program.collect() });
    }
    let variable = |name: &str| -> Option<String> {
        Some(entry.get("env")?.as_object()?.get(name)?.as_str()?.to_owned())
    };
    let url = match &wrap.url_env {
        Some(name) => variable(name)
            .ok_or_else(|| format!("its `env` has no {name}, which would hold the address"))?,
        None => wrap.url.ok_or("its `args` have nothing behind the `--`, and no --url either")?,
    };
    let bearer_variable = wrap.bearer_env;
    let mut address = ServerAddress { url, bearer_variable, ..ServerAddress::default() };
    for (name, value) in wrap.header.iter().filter_map(|header| header.split_once(':')) {
        address.headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    for (header, name) in wrap.header_env.iter().filter_map(|header| header.split_once('=')) {
        let header = header.to_owned();
        match variable(name) {
            Some(value) => address.headers.push((header, value)),
            None => address.header_variables.push((header, name.to_owned())),
        }
    }
    Ok(ServerEntry::Address(address))
}

impl ServerAddress {
    fn read(entry: &Map<String, Value>) -> Result<Self, String> {
        let url = ADDRESS_MEMBERS.iter().find_map(|name| entry.get(*name)).and_then(Value::as_str);
        let Some(url) = url else { return Err("it has neither a command nor a URL".to_owned()) };
        if let Some(kind @ ("sse" | "ws")) = entry.get("type").and_then(Value::as_str) {
            return Err(format!(
                "it is of the type `{kind}`, and wrap speaks streamable HTTP alone"
            ));
        }
        if let Some(name) = ONLY_THE_CLIENT.iter().find(|name| entry.contains_key(**name)) {
            return Err(format!("the client itself signs in there (`{name}`), and wrap cannot"));
        }
        let mut headers = pairs(entry, "headers")?;
        headers.extend(pairs(entry, "http_headers")?);
        let bearer = entry.get("bearer_token_env_var").and_then(Value::as_str);
        Ok(Self {
            url: url.to_owned(),
            headers,
            header_variables: pairs(entry, "env_http_headers")?,
            bearer_variable: bearer.map(str::to_owned),
        })
    }
}

/// The way to run this program before a server.
pub(super) struct Wrapper<'a> {
    pub(super) client: Client,
    pub(super) program: &'a str,
    /// `wrap` and its options, without the wrapped command.
    pub(super) args: &'a [String],
}

impl Wrapper<'_> {
    /// Returns the changes that put this program before the server of the entry.
    pub(super) fn put_before(&self, server: &ServerEntry, entry: &Value) -> Vec<Change> {
        let mut args = self.args.to_vec();
        let mut changes = Vec::new();
        match server {
            ServerEntry::Wrapped { .. } | ServerEntry::Outlast => {
                return vec![Change::set("command", EntryField::Text(self.program.to_owned()))];
            }
            ServerEntry::Program { command, args: theirs } => {
                args.extend(["--".to_owned(), command.clone()]);
                args.extend(theirs.iter().cloned());
            }
            ServerEntry::Address(address) => changes = self.address_away(address, entry, &mut args),
        }
        changes.push(Change::set("command", EntryField::Text(self.program.to_owned())));
        changes.push(Change::set("args", EntryField::List(args)));
        if let ServerEntry::Address(address) = server {
            changes.extend(variables(address, entry));
        }
        changes
    }

    /// Removes the members of an address and adds to `args` the options by which wrap finds them.
    fn address_away(
        &self,
        address: &ServerAddress,
        entry: &Value,
        args: &mut Vec<String>,
    ) -> Vec<Change> {
        let gone = ADDRESS_MEMBERS.iter().chain(&[
            "headers",
            "http_headers",
            "env_http_headers",
            "bearer_token_env_var",
        ]);
        let mut changes: Vec<_> =
            gone.filter(|name| !entry[**name].is_null()).map(|name| Change::remove(name)).collect();
        let typed = matches!(self.client, Client::ClaudeCode | Client::Vscode);
        if typed || !entry["type"].is_null() {
            changes.push(Change::set("type", EntryField::Text("stdio".to_owned())));
        }
        if self.client == Client::Zed {
            changes.push(Change::set("source", EntryField::Text("custom".to_owned())));
        }
        args.extend(["--url-env".to_owned(), URL_VARIABLE.to_owned()]);
        for (at, (header, _)) in address.headers.iter().enumerate() {
            args.extend(["--header-env".to_owned(), format!("{header}={}", header_variable(at))]);
        }
        for (header, variable) in &address.header_variables {
            args.extend(["--header-env".to_owned(), format!("{header}={variable}")]);
        }
        if let Some(variable) = &address.bearer_variable {
            args.extend(["--bearer-env".to_owned(), variable.clone()]);
        }
        changes
    }
}

fn header_variable(at: usize) -> String {
    format!("{HEADER_VARIABLE}{}", at + 1)
}

/// Returns the variables that the entry of an address needs.
fn variables(address: &ServerAddress, entry: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    let passed = address.header_variables.iter().map(|(_, variable)| variable);
    let mut passed: Vec<String> = passed.chain(&address.bearer_variable).cloned().collect();
    if !passed.is_empty() {
        // Only Codex has such members; it passes on the variables that are named here.
        let named = entry["env_vars"].as_array().into_iter().flatten();
        let named = named.filter_map(Value::as_str).map(str::to_owned);
        passed = named.chain(passed).collect();
        changes.push(Change::set("env_vars", EntryField::List(passed)));
    }
    changes.push(Change::set_in("env", URL_VARIABLE, &address.url));
    for (at, (_, value)) in address.headers.iter().enumerate() {
        changes.push(Change::set_in("env", &header_variable(at), value));
    }
    changes
}

/// Returns the changes that make a wrapped entry name its server itself again. `was` is the entry from before the
/// install, if it is known.
pub(super) fn unwrap_entry(
    client: Client,
    behind: &ServerEntry,
    entry: &Value,
    was: Option<&Value>,
) -> Vec<Change> {
    match behind {
        ServerEntry::Program { command, args } => {
            let mut changes = vec![Change::set("command", EntryField::Text(command.clone()))];
            let had_none = was.is_some_and(|was| was["args"].is_null());
            changes.push(match (args.is_empty(), had_none) {
                (true, true) => Change::remove("args"),
                _ => Change::set("args", EntryField::List(args.clone())),
            });
            changes
        }
        ServerEntry::Address(address) => address_back(client, address, entry, was),
        ServerEntry::Wrapped { .. } | ServerEntry::Outlast => Vec::new(),
    }
}

fn address_back(
    client: Client,
    address: &ServerAddress,
    entry: &Value,
    was: Option<&Value>,
) -> Vec<Change> {
    let before = |name: &str| was.map_or(&Value::Null, |was| &was[name]);
    let had = ADDRESS_MEMBERS.into_iter().find(|name| !before(name).is_null());
    let url = had.unwrap_or(match client {
        Client::Windsurf => "serverUrl",
        Client::GeminiCli => "httpUrl",
        _ => "url",
    });
    let mut changes = vec![Change::remove("command"), Change::remove("args")];
    let typed = matches!(client, Client::ClaudeCode | Client::Vscode).then_some("http");
    let kind = if was.is_some() { before("type").as_str() } else { typed };
    changes.push(match kind {
        Some(kind) => Change::set("type", EntryField::Text(kind.to_owned())),
        None => Change::remove("type"),
    });
    if was.is_some() && before("source").is_null() {
        changes.push(Change::remove("source"));
    }
    changes.push(Change::set(url, EntryField::Text(address.url.clone())));
    let headers = if client == Client::Codex { "http_headers" } else { "headers" };
    for (name, value) in &address.headers {
        changes.push(Change::set_in(headers, name, value));
    }
    for (name, variable) in &address.header_variables {
        changes.push(Change::set_in("env_http_headers", name, variable));
    }
    if let Some(variable) = &address.bearer_variable {
        changes.push(Change::set("bearer_token_env_var", EntryField::Text(variable.clone())));
    }
    let is_ours = |name: &str| name == URL_VARIABLE || name.starts_with(HEADER_VARIABLE);
    let variables = entry["env"].as_object().into_iter().flat_map(Map::keys);
    let (ours, theirs): (Vec<_>, Vec<_>) = variables.partition(|name| is_ours(name));
    match theirs.is_empty() && before("env").is_null() {
        true => changes.push(Change::remove("env")),
        false => changes.extend(
            ours.into_iter().map(|name| Change { within: Some("env"), ..Change::remove(name) }),
        ),
    }
    if before("env_vars").is_null() {
        changes.push(Change::remove("env_vars"));
    }
    changes
}

fn texts(entry: &Map<String, Value>, name: &str) -> Result<Vec<String>, String> {
    let Some(value) = entry.get(name) else { return Ok(Vec::new()) };
    Vec::deserialize(value).map_err(|_| format!("its `{name}` is no list of texts"))
}

fn pairs(entry: &Map<String, Value>, name: &str) -> Result<Vec<(String, String)>, String> {
    let Some(value) = entry.get(name) else { return Ok(Vec::new()) };
    let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    let pairs = value.as_object().and_then(|members| members.iter().map(pair).collect());
    pairs.ok_or_else(|| format!("its `{name}` are no texts by name"))
}
