//! A report as a file: front matter with its origin, the text, its sources.

use std::path::Path;

use anyhow::Context as _;
use outlast_core::{Body, Job, Output, ResearchRequest, printable};

use crate::error::{CommandError, CommandResult};
use outlast_server::{cost_text, markdown_sources, yaml_string as quoted};

/// Writes the report, or returns the reason why it cannot. The job keeps the report in any case.
pub(super) fn write(path: &Path, job: &Job, output: &Output) -> CommandResult<()> {
    let written = std::fs::write(path, printable(&text(job, output)));
    let written = written.with_context(|| format!("write the report to {}", path.display()));
    written.map_err(|error| {
        CommandError::from(error)
            .hint(format!("the report is kept: `outlast jobs show {}`", job.id))
    })
}

pub(super) fn text(job: &Job, output: &Output) -> String {
    let question = job.new.request.research().map_or("", ResearchRequest::question);
    let (body, sources) = match &output.body {
        Body::Report { text, sources, .. } => (text.as_str(), sources.as_slice()),
        Body::Tool { .. } => ("", [].as_slice()),
    };
    let mut front = vec![
        ("question", quoted(question)),
        ("model", quoted(output.model.as_deref().unwrap_or("unknown"))),
        ("cost", quoted(&cost_text(output.cost))),
    ];
    if let Some(ended_at) = job.ended_at() {
        front.push(("duration_seconds", format!("{:.1}", job.elapsed(ended_at).as_secs_f64())));
        front.push(("date", quoted(&ended_at.to_string())));
    }
    front.push(("job", quoted(&job.id.to_string())));
    let mut text = "---\n".to_owned();
    for (name, value) in front {
        text.push_str(&format!("{name}: {value}\n"));
    }
    text.push_str("sources:\n");
    for source in sources {
        text.push_str(&format!("  - {}\n", quoted(&source.url)));
    }
    text.push_str("---\n\n");
    text.push_str(body.trim_end());
    text.push('\n');
    text.push_str(&markdown_sources(sources));
    text
}
