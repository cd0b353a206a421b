//! The clients: where each keeps its servers, in which words, and how it hands on a key.

use std::path::PathBuf;

use clap::ValueEnum as _;

use super::codex;
use super::edit::{self, Entry};
use super::json::{Refusal, parse};
use super::layout::Field;
use crate::cli::Client;
use crate::config::Places;

/// The variable that names who may be asked.
const PROVIDERS: &str = "OUTLAST_PROVIDERS";

/// The variable that holds the library's folders.
const LIBRARY: &str = "OUTLAST_LIBRARY";

/// The mode of research that suits every client, however patient.
const MODE: (&str, &str) = ("PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH", "auto");

/// How a client's file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, perhaps with comments; the entry is in the object of this name.
    Json(&'static str),
    Toml,
}

/// How the key gets from the client to this program without being in the client's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyWay {
    /// The client puts the value in where the file has the variable's name between these.
    Reference(&'static str, &'static str),
    /// The client is told the names of variables to pass on.
    Named,
    /// The client passes its whole environment on.
    Inherited,
    /// It cannot: the key must be in outlast.toml.
    OwnFile,
}

/// What to write for this program.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    /// The variables of the keys that it needs. None whose key is in outlast.toml: a variable that is not set must not
    /// stand before it.
    pub(super) keys: Vec<&'static str>,
    /// Who may be asked, where this environment names them.
    pub(super) providers: Option<String>,
    /// Folders of documents, as one variable.
    pub(super) library: Option<String>,
    /// Whether the folders were given on the command line.
    pub(super) library_given: bool,
}

impl Client {
    /// The name on the command line.
    pub(crate) fn id(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The name people know.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Codex => "Codex",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::GeminiCli => "Gemini CLI",
        }
    }

    /// The file with the user's servers.
    pub(crate) fn file(self, places: &Places) -> PathBuf {
        match self {
            Self::ClaudeCode => places.home.join(".claude.json"),
            Self::ClaudeDesktop => {
                places.application_support.join("Claude").join("claude_desktop_config.json")
            }
            Self::Cursor => places.home.join(".cursor").join("mcp.json"),
            Self::Vscode => places.application_support.join("Code").join("User").join("mcp.json"),
            Self::Codex => places.codex.join("config.toml"),
            Self::Windsurf => places.home.join(".codeium").join("windsurf").join("mcp_config.json"),
            Self::Zed => places.xdg_config.join("zed").join("settings.json"),
            Self::GeminiCli => places.home.join(".gemini").join("settings.json"),
        }
    }

    pub(crate) fn format(self) -> Format {
        match self {
            Self::ClaudeCode
            | Self::ClaudeDesktop
            | Self::Cursor
            | Self::Windsurf
            | Self::GeminiCli => Format::Json("mcpServers"),
            Self::Vscode => Format::Json("servers"),
            Self::Zed => Format::Json("context_servers"),
            Self::Codex => Format::Toml,
        }
    }

    pub(super) fn key_way(self) -> KeyWay {
        match self {
            // Without the default, a variable that is not set would keep the whole file from being read.
            Self::ClaudeCode => KeyWay::Reference("${", ":-}"),
            Self::Cursor | Self::Vscode | Self::Windsurf => KeyWay::Reference("${env:", "}"),
            Self::GeminiCli => KeyWay::Reference("$", ""),
            Self::Codex => KeyWay::Named,
            Self::Zed => KeyWay::Inherited,
            Self::ClaudeDesktop => KeyWay::OwnFile,
        }
    }

    /// What the client is told.
    pub(super) fn entry(self, program: &Program) -> Entry {
        let mut fields = Vec::new();
        match self {
            Self::ClaudeCode | Self::Vscode => {
                fields.push(("type", Field::Text("stdio".to_owned())))
            }
            Self::Zed => fields.push(("source", Field::Text("custom".to_owned()))),
            Self::ClaudeDesktop | Self::Cursor | Self::Codex | Self::Windsurf | Self::GeminiCli => {
            }
        }
        fields.push(("command", Field::Text(program.command.clone())));
        fields.push(("args", Field::List(program.args.clone())));
        let mut environment = Vec::new();
        match self.key_way() {
            _ if program.keys.is_empty() => {}
            KeyWay::Reference(before, after) => environment.extend(
                program.keys.iter().map(|key| (*key, Field::Text(format!("{before}{key}{after}")))),
            ),
            KeyWay::Named => {
                let keys = program.keys.iter().map(|key| (*key).to_owned());
                fields.push(("env_vars", Field::List(keys.collect())));
            }
            KeyWay::Inherited | KeyWay::OwnFile => {}
        }
        environment.push((MODE.0, Field::Text(MODE.1.to_owned())));
        if let Some(providers) = &program.providers {
            environment.push((PROVIDERS, Field::Text(providers.clone())));
        }
        if let Some(library) = &program.library {
            environment.push((LIBRARY, Field::Text(library.clone())));
        }
        fields.push(("env", Field::Map(environment)));
        Entry { value: Field::Map(fields), given: program.library_given.then_some(LIBRARY) }
    }
}

impl Format {
    pub(super) fn put(self, text: &str, entry: &Entry) -> Result<String, Refusal> {
        match self {
            Self::Json(container) => edit::put(text, container, entry),
            Self::Toml => codex::put(text, entry),
        }
    }

    pub(super) fn take(self, text: &str) -> Result<Option<String>, Refusal> {
        match self {
            Self::Json(container) => edit::take(text, container),
            Self::Toml => codex::take(text),
        }
    }

    /// Whether the text is `before` with nothing but our entry put in.
    pub(super) fn is_only_added(self, before: &str, text: &str) -> bool {
        match self {
            Self::Json(container) => edit::is_only_added(before, text, container),
            Self::Toml => codex::is_only_added(before, text),
        }
    }

    /// What the entry runs; `None` when there is no entry.
    pub(super) fn command(self, text: &str) -> Result<Option<String>, Refusal> {
        match self {
            Self::Toml => codex::command(text),
            Self::Json(container) => {
                let ours = edit::ours(&parse(text)?, container);
                let ours = ours.map(|ours| ours.to_serde_value().unwrap_or_default());
                Ok(ours.map(|ours| ours["command"].as_str().unwrap_or_default().to_owned()))
            }
        }
    }
}
