//! The content of the entry for each client, and the way in which the client passes on a key.

use super::entry::EntryValue;
use crate::cli::Client;
use crate::client_files::layout::EntryField;

/// The variable that names the providers that may be asked.
const PROVIDERS: &str = "OUTLAST_PROVIDERS";

/// The variable that holds the library's folders.
const LIBRARY: &str = "OUTLAST_LIBRARY";

/// The mode of research that suits every client, regardless of its timeout.
const MODE: (&str, &str) = ("OUTLAST_ASYNC_RESEARCH", "auto");
/// The old name of that variable, which is still read.
const OLD_MODE: &str = "PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH";

/// Returns the old name under which an entry may already set this variable.
pub(super) fn old_name(variable: &str) -> Option<&'static str> {
    (variable == MODE.0).then_some(OLD_MODE)
}

/// The way of the key from the client to this program without the key being in the client's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyWay {
    /// The client inserts the value if the file has the variable's name between these.
    Reference(&'static str, &'static str),
    /// The file lists the names of variables to pass on.
    Named,
    /// The client passes its whole environment on.
    Inherited,
    /// The client cannot pass the key on: it must be in outlast.toml.
    OwnFile,
}

/// The content of the entry for this program.
#[derive(Clone, Debug)]
pub(super) struct ProgramEntry {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    /// The variables of the keys that it needs. Keys in outlast.toml are left out: an unset variable must not override
    /// them.
    pub(super) keys: Vec<&'static str>,
    /// The providers that may be asked, if this environment names them.
    pub(super) providers: Option<String>,
    /// Other variables of this environment that it needs, with their values.
    pub(super) values: Vec<(&'static str, String)>,
    /// Folders of documents, as one variable.
    pub(super) library: Option<String>,
    /// True if the folders were given on the command line.
    pub(super) library_given: bool,
    /// True if a provider has what it needs in this environment.
    pub(super) has_provider: bool,
}

impl Client {
    pub(super) fn key_way(self) -> KeyWay {
        match self {
            // Without the default, an unset variable would make the whole file unreadable.
            Self::ClaudeCode => KeyWay::Reference("${", ":-}"),
            Self::Cursor | Self::Vscode | Self::Windsurf => KeyWay::Reference("${env:", "}"),
            Self::GeminiCli => KeyWay::Reference("$", ""),
            Self::Codex => KeyWay::Named,
            Self::Zed => KeyWay::Inherited,
            Self::ClaudeDesktop => KeyWay::OwnFile,
        }
    }

    /// Returns the entry for the client's file.
    pub(super) fn entry(self, program: &ProgramEntry) -> EntryValue {
        let mut fields = Vec::new();
        match self {
            Self::ClaudeCode | Self::Vscode => {
                fields.push(("type", EntryField::Text("stdio".to_owned())))
            }
            Self::Zed => fields.push(("source", EntryField::Text("custom".to_owned()))),
            Self::ClaudeDesktop | Self::Cursor | Self::Codex | Self::Windsurf | Self::GeminiCli => {
            }
        }
        fields.push(("command", EntryField::Text(program.command.clone())));
        fields.push(("args", EntryField::List(program.args.clone())));
        let mut environment = Vec::new();
        match self.key_way() {
            _ if program.keys.is_empty() => {}
            KeyWay::Reference(before, after) => environment.extend(
                program
                    .keys
                    .iter()
                    .map(|key| (*key, EntryField::Text(format!("{before}{key}{after}")))),
            ),
            KeyWay::Named => {
                let keys = program.keys.iter().map(|key| (*key).to_owned());
                fields.push(("env_vars", EntryField::List(keys.collect())));
            }
            KeyWay::Inherited | KeyWay::OwnFile => {}
        }
        environment.push((MODE.0, EntryField::Text(MODE.1.to_owned())));
        if let Some(providers) = &program.providers {
            environment.push((PROVIDERS, EntryField::Text(providers.clone())));
        }
        let values = program.values.iter();
        environment.extend(values.map(|(name, value)| (*name, EntryField::Text(value.clone()))));
        if let Some(library) = &program.library {
            environment.push((LIBRARY, EntryField::Text(library.clone())));
        }
        fields.push(("env", EntryField::Map(environment)));
        EntryValue {
            value: EntryField::Map(fields),
            given: program.library_given.then_some(LIBRARY),
        }
    }
}
