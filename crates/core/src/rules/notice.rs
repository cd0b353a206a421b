//! Notices: the ends that have one, its text, and the number of deliveries that are tried (G7).

use std::time::Duration;

use serde::Serialize;

use super::charge::maybe_spent;
use crate::{Cost, Job, NanoUsd, Notice, NoticeOutcome, ResearchKind, Visibility};

/// The waits after each failed delivery: nearly a day in all. No delivery follows the one after the last wait.
const WAITS: [Duration; 7] = [
    Duration::from_secs(1),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(6 * 60 * 60),
    Duration::from_secs(16 * 60 * 60),
];

/// The notice as it is delivered. It contains neither the question beyond the title nor any part of the result.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobEvent<'a> {
    event: &'static str,
    job_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<&'a str>,
    owner: &'a str,
    title: &'a str,
    status: &'static str,
    cost: CostTold,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
}

#[derive(Serialize)]
struct CostTold {
    /// Dollars; null if the cost is not known.
    usd: Option<f64>,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    maybe_spent_usd: Option<f64>,
}

impl CostTold {
    fn from_job(job: &Job) -> Self {
        let cost = job.output().map_or(Cost::Unknown, |output| output.cost);
        let usd = cost.amount().map(NanoUsd::as_usd);
        let maybe_spent_usd = usd.is_none().then(|| maybe_spent(job).as_usd());
        Self { usd, kind: cost.kind(), maybe_spent_usd }
    }
}

/// Returns the notice of this job's end. Returns `None` for a job that has not ended, and for quick answers and held
/// workflows, whose callers wait for them.
pub fn notice(job: &Job) -> Option<Notice> {
    let is_research =
        !job.new.request.is_workflow() && job.new.request.kind() == ResearchKind::Research;
    let is_told = match job.new.visibility {
        Visibility::Promised | Visibility::Task => true,
        Visibility::Unpromised => is_research,
    };
    let ended_at = job.ended_at().filter(|_| is_told)?;
    describe("job.ended", job, Some(ended_at.to_string()))
}

/// Returns the notice of the question that a job has just asked (M4); it replaces one that was not delivered yet.
pub fn question_notice(job: &Job) -> Option<Notice> {
    job.open_question()?;
    describe("job.question", job, None)
}

fn describe(event: &'static str, job: &Job, ended_at: Option<String>) -> Option<Notice> {
    let told = JobEvent {
        event,
        job_id: job.id.to_string(),
        conversation_id: job.new.conversation_id(),
        owner: job.new.owner.as_str(),
        title: &job.new.title,
        status: job.kind().as_str(),
        cost: CostTold::from_job(job),
        ended_at,
    };
    Some(Notice { job: job.id, body: serde_json::to_string(&told).ok()? })
}

/// Returns the outcome of a notice that could not be delivered in this many attempts.
pub fn retry_or_give_up(tries: u32) -> NoticeOutcome {
    let failed = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    WAITS.get(failed).map_or(NoticeOutcome::Over, |wait| NoticeOutcome::Again(*wait))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::JobState;
    use crate::rules::tests::{NOW, failure, output, queued, remote, running};
    use crate::rules::{cancel, settle};
    use crate::{Checkpoint, ConversationId, Record, Settlement};

    fn told(record: &Record) -> Option<Value> {
        notice(&record.job).map(|notice| serde_json::from_str(&notice.body).unwrap())
    }

    /// G7: a notice names the job, its owner, its end and its cost, and nothing of the question or the report.
    #[test]
    fn g7_a_notice_names_the_job_its_end_and_its_cost_alone() {
        let (mut record, lease) = running(Checkpoint::Running(remote()));
        record.job.new.request =
            json!({"messages": [{"role": "user", "content": "the whole question"}]}).into();
        record.job.new.conversation = Some(ConversationId::new("c"));
        assert_eq!(told(&record), None, "it has not ended");
        settle(&mut record, &lease, &Settlement::Succeed { output: output(), raw: None }, NOW)
            .unwrap();
        let expected = json!({
            "event": "job.ended", "jobId": "00000000000000000000000000000007", "conversationId": "c",
            "owner": "ann", "title": "why", "status": "succeeded",
            "cost": {"usd": null, "kind": "unknown", "maybe_spent_usd": 0.0}, "endedAt": "1970-01-01T00:16:40.000Z",
        });
        assert_eq!(told(&record), Some(expected));
    }

    /// G7: every end of a promised job and of held research; not of a quick answer or of a workflow whose caller
    /// waits.
    #[test]
    fn g7_every_end_of_a_promised_job_and_of_held_research_sends_a_notice() {
        let research = json!({"messages": []});
        let search = json!({"kind": "search", "messages": []});
        let workflow = json!({"message": "run"});
        let cases = [
            (Visibility::Promised, &research, true),
            (Visibility::Promised, &workflow, true),
            (Visibility::Task, &workflow, true),
            (Visibility::Unpromised, &research, true),
            (Visibility::Unpromised, &search, false),
            (Visibility::Unpromised, &workflow, false),
        ];
        for (visibility, ask, is_told) in cases {
            let mut cancelled = queued();
            cancelled.job.new.visibility = visibility;
            cancelled.job.new.request = ask.clone().into();
            let mut failed = cancelled.clone();
            cancel(&mut cancelled, NOW);
            failed.job.failures.push(failure());
            failed.job.state = JobState::Failed { at: NOW };
            for (record, status) in [(cancelled, "cancelled"), (failed, "failed")] {
                let status = is_told.then(|| json!(status));
                assert_eq!(told(&record).map(|told| told["status"].clone()), status, "{ask}");
            }
        }
    }

    /// G7: the waits grow, and they end within about a day.
    #[test]
    fn g7_the_waits_grow_and_end() {
        let expected = [1, 10, 60, 600, 3_600, 21_600, 57_600].map(Duration::from_secs);
        for (tries, wait) in (1..).zip(expected) {
            assert_eq!(retry_or_give_up(tries), NoticeOutcome::Again(wait), "{tries}");
        }
        assert_eq!(retry_or_give_up(8), NoticeOutcome::Over);
        assert_eq!(retry_or_give_up(u32::MAX), NoticeOutcome::Over);
    }
}
