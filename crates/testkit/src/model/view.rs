//! Makes the answers of two stores comparable: ids become the number of the job, and revisions are removed.

use std::collections::HashMap;

use outlast_core::{
    AnswerOutcome, CancelOutcome, Change, Changes, Checkpoint, ClaimedJob, InsertOutcome, Job,
    JobId, JobPage, Lease, NewJob, RemoteRun, Rev, StoreError, Summary, Timestamp,
};

/// Maps the ids of one store to jobs by order of insertion.
#[derive(Default)]
pub(super) struct Ids {
    ids: Vec<JobId>,
    numbers: HashMap<JobId, usize>,
}

impl Ids {
    pub(super) fn learn(&mut self, id: JobId) {
        self.numbers.insert(id, self.ids.len());
        self.ids.push(id);
    }

    pub(super) fn all(&self) -> &[JobId] {
        &self.ids
    }

    /// Returns the normalised id of the job; an unknown id stays different.
    fn plain(&self, id: JobId) -> JobId {
        match self.numbers.get(&id) {
            Some(number) => format!("{number:032x}").parse().unwrap(),
            None => id,
        }
    }

    pub(super) fn job(&self, job: Job) -> Job {
        let (own, plain) = (job.id.to_string(), self.plain(job.id));
        // The key of a request names its job.
        let checkpoint = match job.checkpoint {
            Checkpoint::Beginning { key } => {
                Checkpoint::Beginning { key: key.replace(&own, &plain.to_string()) }
            }
            other => other,
        };
        let subject = job.new.subject.map(|subject| self.plain(subject));
        let new = NewJob { subject, ..job.new };
        Job { id: plain, new, rev: Rev::default(), checkpoint, ..job }
    }

    pub(super) fn inserted(&self, inserted: InsertOutcome) -> InsertOutcome {
        match inserted {
            InsertOutcome::New(job) => InsertOutcome::New(self.job(job)),
            InsertOutcome::Existing { job, key } => {
                InsertOutcome::Existing { job: self.job(job), key }
            }
        }
    }

    pub(super) fn cancelled(&self, cancelled: CancelOutcome) -> CancelOutcome {
        match cancelled {
            CancelOutcome::Now(job) => CancelOutcome::Now(self.job(job)),
            CancelOutcome::Already(job) => CancelOutcome::Already(self.job(job)),
        }
    }

    pub(super) fn answered(&self, answered: AnswerOutcome) -> AnswerOutcome {
        match answered {
            AnswerOutcome::Accepted(job) => AnswerOutcome::Accepted(Box::new(self.job(*job))),
            AnswerOutcome::Refused(refusal) => AnswerOutcome::Refused(refusal),
        }
    }

    pub(super) fn claimed(&self, claimed: Option<ClaimedJob>) -> Option<ClaimedJob> {
        claimed.map(|ClaimedJob { job, lease }| ClaimedJob {
            job: self.job(job),
            lease: Lease { job: self.plain(lease.job), ..lease },
        })
    }

    pub(super) fn lost(&self, lost: Vec<JobId>) -> Vec<JobId> {
        lost.into_iter().map(|id| self.plain(id)).collect()
    }

    pub(super) fn owed(&self, owed: Vec<(JobId, RemoteRun)>) -> Vec<(JobId, RemoteRun)> {
        owed.into_iter().map(|(id, run)| (self.plain(id), run)).collect()
    }

    /// A cursor is specific to its store; its existence is not.
    pub(super) fn page(&self, page: JobPage) -> (Vec<Summary>, bool) {
        let jobs = page.jobs.into_iter();
        let jobs = jobs.map(|summary| Summary { id: self.plain(summary.id), ..summary }).collect();
        (jobs, page.next.is_some())
    }

    /// Sorted by id, because jobs that one rescue requeues may change in any order.
    pub(super) fn changes(&self, changes: Changes) -> (Vec<Change>, Option<Timestamp>) {
        let jobs = changes.jobs.into_iter();
        let jobs = jobs.map(|change| Change { id: self.plain(change.id), ..change });
        let mut jobs: Vec<_> = jobs.collect();
        jobs.sort_by_key(|change| change.id);
        (jobs, changes.next_due)
    }

    /// A refusal as text, because the store's errors cannot be compared.
    pub(super) fn refused(&self, error: StoreError) -> String {
        match error {
            StoreError::KeyConflict(id) => format!("KeyConflict({})", self.plain(id)),
            StoreError::ConversationBusy(id) => format!("ConversationBusy({})", self.plain(id)),
            other => format!("{other:?}"),
        }
    }
}
