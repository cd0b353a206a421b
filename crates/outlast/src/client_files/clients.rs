//! The clients: the place and format of each one's server list.

use std::path::PathBuf;

use clap::ValueEnum as _;

use crate::cli::Client;
use crate::config::Places;

/// The format of a client's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientFormat {
    /// JSON, perhaps with comments; the entry is in the object of this name.
    Json(&'static str),
    Toml,
}

impl Client {
    /// Returns the name on the command line.
    pub(crate) fn id(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the product name.
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

    /// Returns the file with the user's servers.
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

    pub(crate) fn format(self) -> ClientFormat {
        match self {
            Self::ClaudeCode
            | Self::ClaudeDesktop
            | Self::Cursor
            | Self::Windsurf
            | Self::GeminiCli => ClientFormat::Json("mcpServers"),
            Self::Vscode => ClientFormat::Json("servers"),
            Self::Zed => ClientFormat::Json("context_servers"),
            Self::Codex => ClientFormat::Toml,
        }
    }
}
