//! Workflows and upstream servers from outlast.toml. Every mistake names its file, line and key.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_server::{DEEP_RESEARCH, InputSchema};
use serde_json::{Map, Number, Value};
use toml::Spanned;

use super::Secret;
use super::definitions::{FilePlace, PlacedValue, UpstreamEntry, WorkflowEntry};
use super::error::ConfigResult;
use super::layers::Layers;
use super::settings;
use crate::duration::DurationValue;

/// The time limit of a command whose workflow sets none.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// The time for which a tool may be silent if its workflow sets none.
const TOOL_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The maximum size of a schema file, in bytes.
const MAX_SCHEMA_BYTES: u64 = 1024 * 1024;
/// The variables of our environment that every child gets.
const PASSED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// A configured workflow.
#[derive(Clone, Debug)]
pub(crate) struct Workflow {
    pub(crate) name: String,
    /// The canonical path of its file.
    pub(crate) file: PathBuf,
    pub(crate) description: String,
    pub(crate) retries: u32,
    pub(crate) rerun_after_crash: bool,
    pub(crate) work: WorkflowAction,
    /// The schema of its arguments, if the file has one.
    pub(crate) input: Option<Arc<InputSchema>>,
}

/// The action of a workflow.
#[derive(Clone, Debug)]
pub(crate) enum WorkflowAction {
    Command {
        program: ProgramDefinition,
        timeout: Duration,
        /// True if it may run durable steps.
        steps: bool,
    },
    Tool(Tool),
}

/// A tool of an upstream server.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    /// The name of its server.
    pub(crate) upstream: String,
    pub(crate) name: String,
    pub(crate) message_argument: Option<String>,
    pub(crate) idle_timeout: Duration,
    pub(crate) reset_on_progress: bool,
    pub(crate) total_timeout: Option<Duration>,
}

/// A server whose tools are workflows.
#[derive(Clone, Debug)]
pub(crate) enum Upstream {
    Program(ProgramDefinition),
    Url { url: String, headers: Vec<(String, Secret)> },
}

/// A program to start, with its arguments and variables.
#[derive(Clone, Debug)]
pub(crate) struct ProgramDefinition {
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) environment: Environment,
}

/// Variables of a child. Their values may be secret.
#[derive(Clone)]
pub(crate) struct Environment(pub(crate) Vec<(String, String)>);

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Layers {
    /// Returns the workflow that can be started, if there is only one.
    pub(super) fn fixed_workflow(&self, workflows: &[Workflow]) -> ConfigResult<Option<String>> {
        let names = workflows.iter().map(|workflow| workflow.name.as_str());
        let names: Vec<&str> = [DEEP_RESEARCH].into_iter().chain(names).collect();
        self.parsed(settings::SERVER_FIXED_WORKFLOW, &names.join(", "), |name| match name {
            "" => Some(None),
            name => names.contains(&name).then(|| Some(name.to_owned())),
        })
    }

    /// Returns the configured workflows, and the servers of those that are tools.
    pub(super) fn workflows(&self) -> ConfigResult<(Vec<Workflow>, BTreeMap<String, Upstream>)> {
        let Some(file) = &self.file else { return Ok((Vec::new(), BTreeMap::new())) };
        let at = FilePlace { path: &file.path, text: &file.text };
        let mut reader = WorkflowReader { layers: self, at, upstreams: BTreeMap::new() };
        for (name, entry) in &file.definitions.upstream {
            let upstream = reader.upstream(name, entry)?;
            reader.upstreams.insert(name.get_ref().clone(), upstream);
        }
        let mut workflows: Vec<Workflow> = Vec::new();
        for entry in &file.definitions.workflow {
            let workflow = reader.workflow(entry)?;
            if workflows.iter().any(|other| other.name == workflow.name) {
                return Err(reader.at.wrong(&entry.name.span(), "name", "is used twice"));
            }
            workflows.push(workflow);
        }
        Ok((workflows, reader.upstreams))
    }
}

pub(super) struct WorkflowReader<'a> {
    pub(super) layers: &'a Layers,
    pub(super) at: FilePlace<'a>,
    /// The servers whose tools workflows may name.
    pub(super) upstreams: BTreeMap<String, Upstream>,
}

impl WorkflowReader<'_> {
    fn workflow(&self, entry: &WorkflowEntry) -> ConfigResult<Workflow> {
        let name = self.name(&entry.name, "name")?;
        if name == DEEP_RESEARCH {
            return self.wrong(&entry.name, "name", "is that of the built-in workflow");
        }
        let work = match (&entry.command, &entry.tool) {
            (Some(command), None) => self.command(entry, command)?,
            (None, Some(tool)) => self.tool(entry, tool)?,
            (Some(_), Some(tool)) => {
                return self.wrong(tool, "tool", "cannot be combined with `command`");
            }
            (None, None) => {
                let why = "is missing, and so is `tool`: a workflow needs one of them";
                return self.wrong(&entry.name, "command", why);
            }
        };
        let retries = match &entry.retries {
            Some(retries) if *retries.get_ref() > 100 => {
                return self.wrong(retries, "retries", "must be 0 to 100");
            }
            Some(retries) => *retries.get_ref(),
            None => 0,
        };
        let message_argument = match &work {
            WorkflowAction::Tool(tool) => tool.message_argument.clone(),
            WorkflowAction::Command { .. } => None,
        };
        let input = self.input_schema(entry)?;
        let input = input.map(|input| Arc::new(input.with_message_argument(message_argument)));
        Ok(Workflow {
            name,
            file: self.file(),
            description: entry.description.clone(),
            retries,
            rerun_after_crash: entry.rerun_after_crash
                || matches!(work, WorkflowAction::Command { steps: true, .. }),
            work,
            input,
        })
    }

    /// Returns the schema of the arguments, in the file itself or in one next to it.
    fn input_schema(&self, entry: &WorkflowEntry) -> ConfigResult<Option<InputSchema>> {
        match (&entry.input_schema, &entry.input_schema_file) {
            (None, None) => Ok(None),
            (Some(_), Some(file)) => self.wrong(
                file,
                "input_schema_file",
                "cannot be given together with `input_schema`",
            ),
            (Some(given), None) => {
                let schema = as_json(given.get_ref()).and_then(InputSchema::new);
                let schema = schema.map_err(|why| {
                    let why = format!("is not a usable JSON Schema: {why}");
                    self.at.wrong(&given.span(), "input_schema", why)
                });
                schema.map(Some)
            }
            (None, Some(file)) => {
                let path = self.folder().join(file.get_ref());
                let schema = read_json(&path).and_then(|document| {
                    let schema = InputSchema::new(document);
                    schema.map_err(|why| format!("is not a usable JSON Schema: {why}"))
                });
                let schema = schema.map_err(|why| {
                    let why = format!("names {}, which {why}", path.display());
                    self.at.wrong(&file.span(), "input_schema_file", why)
                });
                schema.map(Some)
            }
        }
    }

    fn command(
        &self,
        entry: &WorkflowEntry,
        command: &Spanned<Vec<String>>,
    ) -> ConfigResult<WorkflowAction> {
        let of_tools = "is for tools of an upstream server, not for commands";
        self.absent("message_argument", &entry.message_argument, of_tools)?;
        let resets = &entry.reset_timeout_on_progress;
        self.absent("reset_timeout_on_progress", resets, of_tools)?;
        self.absent("max_total_timeout", &entry.max_total_timeout, of_tools)?;
        let timeout = self.duration("timeout", &entry.timeout)?;
        let program = self.program(command, &entry.cwd, &entry.env, &entry.pass_env)?;
        let steps = entry.steps.as_ref().is_some_and(|steps| *steps.get_ref());
        let timeout = timeout.unwrap_or(COMMAND_TIMEOUT);
        Ok(WorkflowAction::Command { program, timeout, steps })
    }

    fn tool(&self, entry: &WorkflowEntry, tool: &Spanned<String>) -> ConfigResult<WorkflowAction> {
        let of_commands = "is for commands; a tool's server has its own, in [upstream]";
        self.absent("cwd", &entry.cwd, of_commands)?;
        self.absent("env", &entry.env, of_commands)?;
        self.absent("pass_env", &entry.pass_env, of_commands)?;
        self.absent("steps", &entry.steps, "is for commands")?;
        let named = tool.get_ref().split_once('.');
        let Some((upstream, name)) = named.filter(|(_, name)| !name.is_empty()) else {
            let why = "must be the name of an upstream, a dot and the name of its tool";
            return self.wrong(tool, "tool", why);
        };
        if !self.upstreams.contains_key(upstream) {
            let why =
                format!("names the server `{upstream}`, but there is no [upstream.{upstream}]");
            return self.wrong(tool, "tool", why);
        }
        let resets =
            entry.reset_timeout_on_progress.as_ref().is_none_or(|resets| *resets.get_ref());
        Ok(WorkflowAction::Tool(Tool {
            upstream: upstream.to_owned(),
            name: name.to_owned(),
            message_argument: entry.message_argument.as_ref().map(|name| name.get_ref().clone()),
            idle_timeout: self.duration("timeout", &entry.timeout)?.unwrap_or(TOOL_TIMEOUT),
            reset_on_progress: resets,
            total_timeout: self.duration("max_total_timeout", &entry.max_total_timeout)?,
        }))
    }

    fn upstream(&self, name: &Spanned<String>, entry: &UpstreamEntry) -> ConfigResult<Upstream> {
        self.name(name, "upstream")?;
        match (&entry.command, &entry.url) {
            (Some(command), None) => {
                let of_urls = "is for servers with a `url`";
                self.absent("headers", &entry.headers, of_urls)?;
                self.absent("bearer_env", &entry.bearer_env, of_urls)?;
                let program = self.program(command, &entry.cwd, &entry.env, &entry.pass_env)?;
                Ok(Upstream::Program(program))
            }
            (None, Some(url)) => {
                let of_programs = "is for servers with a `command`";
                self.absent("cwd", &entry.cwd, of_programs)?;
                self.absent("env", &entry.env, of_programs)?;
                self.absent("pass_env", &entry.pass_env, of_programs)?;
                self.url(url, entry)
            }
            (Some(_), Some(url)) => self.wrong(url, "url", "cannot be combined with `command`"),
            (None, None) => {
                let why = "is missing, and so is `url`: an upstream needs one of them";
                self.wrong(name, "command", why)
            }
        }
    }

    fn url(&self, url: &Spanned<String>, entry: &UpstreamEntry) -> ConfigResult<Upstream> {
        let text = url.get_ref();
        if !text.starts_with("https://") && !text.starts_with("http://") {
            return self.wrong(url, "url", "must start with https:// or http://");
        }
        let given = entry.headers.iter().flat_map(|headers| headers.get_ref());
        let mut headers: Vec<_> =
            given.map(|(name, value)| (name.clone(), Secret(value.clone()))).collect();
        if let Some(bearer) = &entry.bearer_env {
            let Some(token) = self.layers.environment.get(bearer.get_ref()) else {
                let why = format!("names the variable {}, which is not set", bearer.get_ref());
                return self.wrong(bearer, "bearer_env", why);
            };
            headers.push(("Authorization".to_owned(), Secret(format!("Bearer {token}"))));
        }
        Ok(Upstream::Url { url: text.clone(), headers })
    }

    pub(super) fn program(
        &self,
        command: &Spanned<Vec<String>>,
        cwd: &PlacedValue<PathBuf>,
        env: &PlacedValue<BTreeMap<String, String>>,
        pass_env: &PlacedValue<Vec<String>>,
    ) -> ConfigResult<ProgramDefinition> {
        let argv = command.get_ref();
        if argv.first().is_none_or(|program| program.is_empty()) {
            let why = "must be a list: the program, then its arguments";
            return self.wrong(command, "command", why);
        }
        let passed = pass_env.iter().flat_map(|names| names.get_ref()).map(String::as_str);
        let own = PASSED
            .into_iter()
            .chain(passed)
            .filter_map(|name| Some((name.to_owned(), self.layers.environment.get(name)?.clone())));
        let mut environment: BTreeMap<String, String> = own.collect();
        environment.extend(env.iter().flat_map(|variables| variables.get_ref().clone()));
        let is_bad = |(name, value): (&String, &String)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        };
        if environment.iter().any(is_bad) {
            let span = env.as_ref().map(Spanned::span).unwrap_or_default();
            return Err(self.at.wrong(&span, "env", "has a name or a value no variable can have"));
        }
        Ok(ProgramDefinition {
            argv: argv.clone(),
            cwd: self.folder().join(cwd.as_ref().map_or(Path::new(""), |cwd| cwd.get_ref())),
            environment: Environment(environment.into_iter().collect()),
        })
    }

    /// Returns the file itself, under its canonical name.
    fn file(&self) -> PathBuf {
        let path = self.at.path;
        path.canonicalize()
            .or_else(|_| std::path::absolute(path))
            .unwrap_or_else(|_| path.to_owned())
    }

    /// Returns the folder of the file.
    fn folder(&self) -> PathBuf {
        let path = std::path::absolute(self.at.path).unwrap_or_else(|_| self.at.path.to_owned());
        path.parent().unwrap_or(Path::new("/")).to_owned()
    }

    fn name(&self, name: &Spanned<String>, key: &str) -> ConfigResult<String> {
        let text = name.get_ref();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if (1..=48).contains(&text.len()) && text.bytes().all(fits) {
            return Ok(text.clone());
        }
        self.wrong(name, key, "must have 1 to 48 of the characters A-Z a-z 0-9 - _")
    }

    fn duration(
        &self,
        key: &str,
        given: &PlacedValue<DurationValue>,
    ) -> ConfigResult<Option<Duration>> {
        let Some(given) = given else { return Ok(None) };
        let parsed = crate::duration::parse(&given.get_ref().text());
        let parsed = parsed.map_err(|why| self.at.wrong(&given.span(), key, why))?;
        if parsed.is_zero() {
            return self.wrong(given, key, "must be longer than nothing");
        }
        Ok(Some(parsed))
    }

    fn absent<T>(&self, key: &str, given: &PlacedValue<T>, why: &str) -> ConfigResult<()> {
        given.as_ref().map_or(Ok(()), |given| self.wrong(given, key, why))
    }

    /// Returns the error for a value, with its place.
    fn wrong<T, N>(&self, at: &Spanned<T>, key: &str, why: impl Into<String>) -> ConfigResult<N> {
        Err(self.at.wrong(&at.span(), key, why))
    }
}

/// Converts a value of the file to JSON; values that JSON does not have are refused.
fn as_json(value: &toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text.clone()),
        toml::Value::Integer(number) => Value::Number((*number).into()),
        toml::Value::Float(number) => match Number::from_f64(*number) {
            Some(number) => Value::Number(number),
            None => return Err(format!("{number} is not a number of JSON")),
        },
        toml::Value::Boolean(flag) => Value::Bool(*flag),
        toml::Value::Datetime(moment) => {
            return Err(format!("write the date {moment} as a text, in quotes"));
        }
        toml::Value::Array(items) => {
            Value::Array(items.iter().map(as_json).collect::<Result<_, _>>()?)
        }
        toml::Value::Table(entries) => {
            let entries = entries.iter().map(|(name, value)| Ok((name.clone(), as_json(value)?)));
            Value::Object(entries.collect::<Result<Map<_, _>, String>>()?)
        }
    })
}

/// Reads a file of JSON, or returns its mistake.
fn read_json(path: &Path) -> Result<Value, String> {
    let file = std::fs::File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_SCHEMA_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_SCHEMA_BYTES {
        return Err(format!("is larger than {} KiB", MAX_SCHEMA_BYTES / 1024));
    }
    // The parser names line and column.
    serde_json::from_slice(&bytes).map_err(|error| format!("is not JSON: {error}"))
}
