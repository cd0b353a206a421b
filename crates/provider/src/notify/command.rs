//! Runs a command for each notice, without a shell: the JSON on its standard input, exit code 0 for "delivered".
//!
//! Arguments may have the placeholders `{title}` and `{state}`. They are a choice of the operator's: other users of the machine
//! can see the arguments of a process.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{NotDelivered, Notice, Notifier, printable};
use serde::Deserialize;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use super::not_delivered;
use crate::command::{Group, Stderr, locate};

/// The longest time the command may run.
const LIMIT: Duration = Duration::from_secs(30);
/// The longest time it may take to exit after SIGTERM, before it is killed.
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// The time to wait for the rest of standard error: a process that it left behind may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The options of a command.
#[derive(Debug)]
pub struct NotifyCommandOptions {
    /// The program and its arguments, as configured.
    pub program: Vec<String>,
    /// The working directory, in which a program with a relative path is looked for.
    pub cwd: PathBuf,
    /// All of its environment.
    pub environment: Vec<(String, String)>,
}

/// Runs a command for each notice.
pub struct NotifyCommand {
    options: NotifyCommandOptions,
}

impl std::fmt::Debug for NotifyCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Arguments and variables may hold secrets.
        f.debug_tuple("NotifyCommand").field(&self.options.program.first()).finish()
    }
}

impl NotifyCommand {
    /// Starts nothing yet.
    pub fn new(options: NotifyCommandOptions) -> Self {
        Self { options }
    }

    fn start(&self, notice: &Notice) -> Result<Child, NotDelivered> {
        let NotifyCommandOptions { program, cwd, environment } = &self.options;
        let Some((name, arguments)) = program.split_first() else {
            return Err(not_delivered("the command line is empty"));
        };
        let ended: JobValues = serde_json::from_str(&notice.body).unwrap_or_default();
        Command::new(locate(name, cwd, environment))
            .args(arguments.iter().map(|argument| ended.fill(argument)))
            .current_dir(cwd)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| not_delivered(format!("{name} cannot be started: {error}")))
    }
}

/// The values of the placeholders.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JobValues {
    title: String,
    #[serde(rename = "status")]
    state: String,
}

impl JobValues {
    /// The argument with values in place of its placeholders. A value is one line of printable text, is not searched for
    /// placeholders, and cannot turn the argument into an option.
    fn fill(&self, argument: &str) -> String {
        let (mut filled, mut rest) = (String::with_capacity(argument.len()), argument);
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            filled.push_str(before);
            let known = [("{title}", &self.title), ("{state}", &self.state)];
            let found =
                known.into_iter().find_map(|(name, value)| Some((value, from.strip_prefix(name)?)));
            match found {
                Some((value, after)) => {
                    filled.push_str(&one_line(value));
                    rest = after;
                }
                None => {
                    filled.push('{');
                    rest = from.strip_prefix('{').unwrap_or_default();
                }
            }
        }
        filled.push_str(rest);
        if filled.starts_with('-') && !argument.starts_with('-') {
            filled.insert(0, ' ');
        }
        filled
    }
}

fn one_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[async_trait]
impl Notifier for NotifyCommand {
    async fn deliver(&self, notice: &Notice) -> Result<(), NotDelivered> {
        let mut child = self.start(notice)?;
        let group = child.id().and_then(|pid| Group::find_group(pid).ok());
        let mut stderr = Stderr::default();
        let ended = tokio::time::timeout(LIMIT, run(&mut child, &notice.body, &mut stderr)).await;
        let why = match ended {
            Ok(Ok(status)) if status.success() => return Ok(()),
            Ok(Ok(status)) => format!("the command ended with {status}"),
            Ok(Err(error)) => format!("the command cannot be waited for: {error}"),
            Err(_) => {
                if let Some(group) = group {
                    group.end(EXIT_GRACE).await;
                }
                format!("the command did not end within {} s", LIMIT.as_secs())
            }
        };
        Err(NotDelivered { why, detail: stderr.tail().map(|tail| printable(&tail)) })
    }
}

/// Writes the command's input and waits for its end.
async fn run(child: &mut Child, body: &str, stderr: &mut Stderr) -> std::io::Result<ExitStatus> {
    if let Some(mut stdin) = child.stdin.take() {
        // A command need not read its input.
        drop(stdin.write_all(body.as_bytes()).await);
    }
    let Some(pipe) = child.stderr.take() else { return child.wait().await };
    let collecting = stderr.collect(pipe, |_| {});
    tokio::pin!(collecting);
    let status = tokio::select! {
        status = child.wait() => status,
        () = &mut collecting => return child.wait().await,
    };
    drop(tokio::time::timeout(LAST_WORDS, collecting).await);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notifier(script: &str) -> NotifyCommand {
        let program = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        NotifyCommand::new(NotifyCommandOptions { program, cwd: "/".into(), environment })
    }

    fn notice() -> Notice {
        let job = outlast_core::JobId::new(uuid::Uuid::from_u128(7));
        Notice { job, body: r#"{"event":"job.ended"}"#.to_owned() }
    }

    /// G7: the JSON is on standard input; what does not exit with 0 was not delivered, and its last words say why.
    #[tokio::test]
    async fn g7_the_exit_code_decides_if_it_was_delivered() {
        let table = [
            (r#"read -r line; [ "$line" = '{"event":"job.ended"}' ]"#, None),
            ("exec true", None),
            (
                "echo out; printf 'no \\033[31mhost\\n' >&2; exit 7",
                Some(("the command ended with exit status: 7", Some("no [31mhost"))),
            ),
            ("env >&2; exit 1", Some(("the command ended with exit status: 1", None))),
        ];
        for (script, expected) in table {
            let delivered = notifier(script).deliver(&notice()).await;
            match (delivered, expected) {
                (Ok(()), None) => {}
                (Err(NotDelivered { why, detail }), Some((expected, said))) => {
                    assert_eq!(why, expected, "{script}");
                    match said {
                        Some(_) => assert_eq!(detail.as_deref(), said),
                        None => assert!(!detail.unwrap().contains("HOME="), "no other environment"),
                    }
                }
                (other, _) => panic!("{script}: {other:?}"),
            }
        }
        let missing = NotifyCommandOptions {
            program: vec!["./missing".to_owned()],
            cwd: "/".into(),
            environment: Vec::new(),
        };
        let missing = NotifyCommand::new(missing).deliver(&notice()).await.unwrap_err();
        assert!(missing.why.contains("cannot be started"), "{missing:?}");
    }

    /// G7: placeholders are filled once, and a title is never an option.
    #[test]
    fn g7_placeholders_are_filled_and_never_begin_an_argument_with_a_dash() {
        let ended = |title: &str| JobValues { title: title.to_owned(), state: "failed".to_owned() };
        let table = [
            ("{title}", "Why?", "Why?"),
            ("{state}: {title}", "Why?", "failed: Why?"),
            ("{title}", "--icon=/etc/passwd", " --icon=/etc/passwd"),
            ("{title}-x", "", " -x"),
            ("--hint={title}", "-a", "--hint=-a"),
            ("{title}", "{state} {title}", "{state} {title}"),
            ("{titles} {", "x", "{titles} {"),
            ("{{title}}", "x", "{x}"),
            ("{title}", "two\nlines\0 \u{1b}[31m", "two lines [31m"),
        ];
        for (argument, title, expected) in table {
            assert_eq!(ended(title).fill(argument), expected, "{argument} {title:?}");
        }
    }

    /// A process that the command left behind does not keep its end from being seen.
    #[tokio::test]
    async fn processes_that_a_command_leaves_behind_are_not_awaited() {
        let (notifier, notice) = (notifier("sleep 20 & exit 0"), notice());
        let delivering = notifier.deliver(&notice);
        tokio::time::timeout(Duration::from_secs(10), delivering).await.unwrap().unwrap();
    }
}
