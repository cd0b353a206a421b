//! One owner takes all capacity: another owner must be served next.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::target::{POLL, START, Target, start};
use crate::web::{ANN, BOB, Web, result};
use crate::{Setting, Verdict};

async fn started(web: &Web, token: &str, number: usize, scenario: &str) -> Result<Value, String> {
    let answer = web.call(token, START, &start(number, scenario)).await?;
    let id = answer["structuredContent"]["jobId"].clone();
    if id.is_string() { Ok(id) } else { Err(format!("a start is refused: {answer}")) }
}

/// Lets one owner fill the queue before another asks one question.
pub(crate) async fn queue(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    target.set("OUTLAST_RATE_PER_MINUTE", "100000");
    let web = Web::serve(&mut target, &["--concurrency", "2"], None).await;
    let jobs = if setting.short { 60 } else { 500 };
    for number in 0..jobs {
        started(&web, ANN, number, "ok;words=60;delay_ms=4000").await?;
    }
    let before = target.simulator.stats().submits;
    started(&web, BOB, jobs, "ok;words=60;delay_ms=0").await?;
    let question = format!("Question {jobs}?");
    let waiting = async {
        loop {
            let runs = target.simulator.stats().runs;
            if let Some(place) = runs.iter().position(|run| run.submitted_input.contains(&question))
            {
                return place as u64;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let Ok(place) = tokio::time::timeout(Duration::from_secs(60), waiting).await else {
        return Err(format!("the second owner's job did not begin within a minute, behind {jobs}"));
    };
    let others = place.saturating_sub(before);
    let counted = format!("{others} jobs of the first owner came before it, {jobs} were queued");
    // Two were running, and one start may have been under way.
    if others > 4 { Err(counted) } else { Ok(counted) }
}

/// Lets one owner park the maximum number of polls before another polls.
pub(crate) async fn polls(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    target.set("OUTLAST_RATE_PER_MINUTE", "100000");
    target.set("OUTLAST_MAX_POLLS", "20");
    target.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "5000");
    let web = Web::serve(&mut target, &[], None).await;
    let anns = json!({ "jobId": started(&web, ANN, 1, "ok;words=60;hold").await? });
    let bobs = json!({ "jobId": started(&web, BOB, 2, "ok;words=60;hold").await? });
    let mut parked = Vec::new();
    for _ in 0..40 {
        let mut stream = web.connect().await;
        stream.write_all(&web.tool_call(ANN, POLL, &anns, json!({}))).await.unwrap();
        parked.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let answer = web.call(BOB, POLL, &bobs).await?;
    let held = answer["structuredContent"]["status"] == "IN_PROGRESS";
    if held {
        Ok("40 polls of one owner, the other's was parked".to_owned())
    } else {
        Err(answer.to_string())
    }
}

/// Reads queued jobs as tasks, which must start none of them.
pub(crate) async fn tasks(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    target.set("OUTLAST_RATE_PER_MINUTE", "100000");
    let web = Web::serve(&mut target, &["--no-worker"], None).await;
    let jobs = if setting.short { 10 } else { 60 };
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    for number in 0..jobs {
        let id = started(&web, ANN, number, "ok;words=60;hold").await?;
        let meta = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
        let name = id.as_str().unwrap_or_default().to_owned();
        let asking = web.request(ANN, "tasks/get", &name, json!({ "taskId": id }), meta);
        let answer = web.say(&asking).await.ok_or("no answer to tasks/get")?;
        if result(&answer).is_none() {
            return Err(format!("tasks/get is refused: {answer}"));
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    target.paid(0).map(|counted| format!("{jobs} queued jobs looked at, {counted}"))
}
