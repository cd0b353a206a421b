//! The command by which an agent with a shell is notified of the end of a job (L1): it runs until the job has ended.

use serde::{Deserialize, Serialize};

use crate::JobId;

/// The clients whose agent can run a command in the background, by the beginning of the name in their `clientInfo`, in lower
/// case.
const CLIENTS_WITH_A_SHELL: [&str; 14] = [
    "amp-mcp-client",
    "claude-code",
    "cline",
    "codex",
    "crush",
    "cursor",
    "gemini-cli",
    "goose",
    "kilo",
    "opencode",
    "qwen",
    "roo",
    "visual studio code",
    "zed",
];

/// The command that starts this program, and the options that find the jobs of this server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitCommand {
    /// The program and its first arguments, as it was installed.
    pub start: Vec<String>,
    /// The options that name the store.
    pub options: Vec<String>,
}

impl WaitCommand {
    /// Returns the arguments of the command, the program first.
    pub fn argv(&self, job: &JobId) -> Vec<String> {
        let wait = ["jobs", "wait", &job.to_string()].map(str::to_owned);
        [&self.start[..], &wait, &self.options].concat()
    }

    /// Returns the sentence for a model; `None` if the client is not known to have a shell.
    pub fn sentence(&self, job: &JobId, client: Option<&str>) -> Option<String> {
        has_shell(client?).then(|| {
            let words: Vec<String> = self.argv(job).iter().map(|word| quote(word)).collect();
            format!(
                "To be notified, run `{}` in the background; it ends when the job does.",
                words.join(" ")
            )
        })
    }
}

fn has_shell(client: &str) -> bool {
    let client = client.to_lowercase();
    CLIENTS_WITH_A_SHELL.iter().any(|name| client.starts_with(name))
}

/// Returns a word as a shell reads it.
fn quote(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./=:,+@%".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L1: the sentence is for clients with a shell, and a shell reads the command as it was meant.
    #[test]
    fn l1_a_client_with_a_shell_is_given_the_command() {
        let job = JobId::new(uuid::Uuid::from_u128(7));
        let options = ["--data-dir", "/home/o'neil/my data"].map(str::to_owned).to_vec();
        let command = WaitCommand { start: vec!["outlast".to_owned()], options };
        let sentence = command.sentence(&job, Some("claude-code")).unwrap();
        let shown = format!(r"`outlast jobs wait {job} --data-dir '/home/o'\''neil/my data'`");
        assert!(sentence.contains(&shown), "{sentence}");
        for client in ["codex-mcp-client", "gemini-cli-mcp-client-outlast", "Cline"] {
            assert!(command.sentence(&job, Some(client)).is_some(), "{client}");
        }
        for client in [None, Some("claude-ai"), Some("my-bot")] {
            assert_eq!(command.sentence(&job, client), None, "{client:?}");
        }
        assert_eq!(command.argv(&job)[..4], ["outlast", "jobs", "wait", &job.to_string()]);
    }
}
