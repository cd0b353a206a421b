//! A job to test rules on.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::rules::admit::accept;
use crate::{
    Body, Checkpoint, Code, Cost, EndNotices, Failure, Fence, Holder, JobId, JobState, Lease,
    NewJob, Output, OwnerId, Profile, Record, RemoteRun, Timestamp, Usage, Visibility, WorkerId,
};

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_000_000);

pub(crate) fn queued() -> Record {
    let new = NewJob {
        owner: OwnerId::new("ann"),
        conversation: None,
        subject: None,
        profile: Profile::new("agent"),
        workflow: NewJob::DEEP_RESEARCH.to_owned(),
        title: "why".to_owned(),
        request: Value::Null.into(),
        priority: 0,
        visibility: Visibility::Promised,
        max_failures: 2,
        attempt_timeout: Duration::from_secs(600),
        life: Some(Duration::from_secs(900)),
        keep: Some(Duration::from_secs(1800)),
    };
    let job = accept(new, Checkpoint::NotBegun, JobId::new(uuid::Uuid::from_u128(7)), 1, NOW);
    Record { job, holder: None, bytes: 0, notice: EndNotices::Off }
}

pub(crate) fn running(checkpoint: Checkpoint) -> (Record, Lease) {
    let mut record = queued();
    let worker = WorkerId::new("w");
    record.job.state = JobState::Running { since: NOW };
    record.job.fence = Fence(1);
    record.job.checkpoint = checkpoint;
    record.holder =
        Some(Holder { worker: worker.clone(), until: NOW.after(Duration::from_secs(30)) });
    let lease = Lease { job: record.job.id, worker, fence: Fence(1) };
    (record, lease)
}

pub(crate) fn remote() -> RemoteRun {
    RemoteRun { provider: "agent".to_owned(), id: "resp_1".to_owned(), cursor: None, begun_at: NOW }
}

pub(crate) fn output() -> Arc<Output> {
    Arc::new(Output {
        body: Body::report("because", Vec::new()),
        model: None,
        usage: Usage::default(),
        cost: Cost::Unknown,
    })
}

pub(crate) fn failure() -> Failure {
    Failure {
        code: Code::Timeout,
        message: "late".to_owned(),
        detail: None,
        at: NOW,
        run_goes_on: false,
        run: crate::RunStatus::Unknown,
    }
}
