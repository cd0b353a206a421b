//! From the configuration to the tool set `jobs`: the workflows and their names.

use std::collections::HashSet;

use outlast_core::Profile;
use outlast_server::{DEEP_RESEARCH, Jobs, JobsMode, JobsOptions, Tools, WorkKind, Workflow};

use crate::config::{self, Config};
use crate::error::{CommandResult, refuse};

/// Returns the options of the tool set; `None` if it would have no tool.
pub(super) fn options(
    config: &Config,
    research: Option<&Profile>,
) -> CommandResult<Option<JobsOptions>> {
    let (mode, workflows) = if config.async_mode {
        let workflows = startable(config, research);
        if workflows.is_empty() {
            let hint = "configure a [[workflow]] in outlast.toml, or a research provider for the built-in \
                        deep_research: set PERPLEXITY_API_KEY, OUTLAST_LIBRARY or OUTLAST_PROVIDERS";
            return refuse("the tool set `jobs` has nothing to start", hint);
        }
        let mode = match &config.fixed_workflow {
            Some(name) => JobsMode::OneWorkflow(name.clone()),
            None => JobsMode::AnyWorkflow,
        };
        (mode, workflows)
    } else {
        if config.workflows.is_empty() {
            return Ok(None);
        }
        if config.fixed_workflow.is_some() {
            tracing::warn!("a fixed workflow means nothing without --async");
        }
        (JobsMode::Held, startable(config, None))
    };
    if config.fixed_workflow.as_deref() == Some(DEEP_RESEARCH) && research.is_none() {
        let why = format!("the workflow {DEEP_RESEARCH} needs a research provider");
        return refuse(why, "set PERPLEXITY_API_KEY, OUTLAST_LIBRARY or OUTLAST_PROVIDERS");
    }
    Ok(Some(JobsOptions {
        workflows,
        mode,
        wait: config.long_poll,
        keep: config.job_ttl,
        disclaimer: config.perplexity.disclaimer,
    }))
}

/// Returns the workflows that can be started as jobs: the built-in one if research is possible, then the configured
/// ones.
pub(crate) fn startable(config: &Config, research: Option<&Profile>) -> Vec<Workflow> {
    let built_in = research.map(|profile| deep_research(profile, config));
    built_in.into_iter().chain(config.workflows.iter().map(workflow)).collect()
}

/// Refuses a workflow if its name, or that of the tool that would start it, already belongs to a tool (E2).
pub(super) fn check_names(sets: &[Tools], config: &Config) -> CommandResult<()> {
    let others = sets.iter().filter(|set| !matches!(set, Tools::Jobs(_)));
    let mut taken: HashSet<String> = others.flat_map(Tools::names).collect();
    if config.async_mode {
        taken.extend(Jobs::NAMES.map(str::to_owned));
    }
    for config::Workflow { name, .. } in &config.workflows {
        let clash =
            [name.clone(), format!("start_{name}")].into_iter().find(|it| taken.contains(it));
        if let Some(tool) = clash {
            let why = format!("the workflow `{name}` clashes with the tool `{tool}`");
            return refuse(why, "give the workflow another name in outlast.toml");
        }
    }
    Ok(())
}

fn workflow(workflow: &config::Workflow) -> Workflow {
    let (work, timeout) = match &workflow.work {
        config::WorkflowAction::Command { timeout, .. } => (WorkKind::Command, *timeout),
        config::WorkflowAction::Tool(tool) => {
            (WorkKind::Tool { takes_message: tool.message_argument.is_some() }, tool.idle_timeout)
        }
    };
    Workflow {
        name: workflow.name.clone(),
        description: workflow.description.clone(),
        profile: crate::wire::workflow_profile(workflow),
        work,
        max_failures: workflow.retries,
        timeout,
        input: workflow.input.clone(),
    }
}

/// Returns the built-in workflow.
fn deep_research(profile: &Profile, config: &Config) -> Workflow {
    Workflow {
        name: DEEP_RESEARCH.to_owned(),
        description: String::new(),
        profile: profile.clone(),
        work: WorkKind::Research,
        max_failures: config.perplexity.max_job_retries,
        timeout: config.perplexity.polling_timeout,
        input: None,
    }
}
