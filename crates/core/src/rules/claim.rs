//! Claims: the conditions for a worker to claim a job, and the effect of a claim.

use super::send_key::new_send_key;
use crate::{
    Checkpoint, Holder, InitialWorker, JobState, Lease, Profile, Record, Timestamp, WorkerId,
};

/// Returns whether a worker with these profiles may claim the job from the queue now. A held call is not in the
/// queue: its process claims it by id.
pub fn is_claimable(record: &Record, profiles: &[Profile], now: Timestamp) -> bool {
    record.job.new.visibility.goes_through_queue() && is_claimable_by_id(record, profiles, now)
}

/// Returns whether a worker with these profiles may claim this job by id now.
pub fn is_claimable_by_id(record: &Record, profiles: &[Profile], now: Timestamp) -> bool {
    match &record.job.state {
        JobState::Queued { run_at } => {
            // If the clock was set back to before the moment when the job was queued, it says nothing about the job's
            // wait.
            let due = *run_at <= now || now < record.job.updated_at;
            due && profiles.contains(&record.job.new.profile)
        }
        JobState::Running { .. }
        | JobState::Succeeded { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. } => false,
    }
}

/// Gives a claimable job to `worker` until `until`.
pub fn claim(record: &mut Record, worker: &WorkerId, until: Timestamp, now: Timestamp) -> Lease {
    record.enter(JobState::Running { since: now }, now);
    record.job.fence = record.job.fence.next();
    record.holder = Some(Holder { worker: worker.clone(), until });
    Lease { job: record.job.id, worker: worker.clone(), fence: record.job.fence }
}

/// Gives a new job to the worker that runs it from the start. Records that its request is about to be sent, unless
/// the job resumes a run.
pub fn claim_on_insert(record: &mut Record, initial_worker: &InitialWorker, now: Timestamp) {
    claim(record, &initial_worker.worker, now.after(initial_worker.lease), now);
    if record.job.checkpoint == Checkpoint::NotBegun {
        record.job.checkpoint = Checkpoint::Beginning { key: new_send_key(&record.job) };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::tests::{NOW, queued, remote, running};
    use crate::rules::{Approach, approach};
    use crate::{Fence, RecoverySemantics, ResendPolicy, ResumePolicy, Visibility};

    #[test]
    fn only_a_due_queued_job_of_a_known_profile_can_be_claimed() {
        let mine = [Profile::new("agent")];
        let mut later = queued();
        later.job.state = JobState::Queued { run_at: NOW.after(Duration::from_millis(1)) };
        let mut set_back = later.clone();
        set_back.job.updated_at = NOW.after(Duration::from_millis(1));
        let cases = [
            ("due", queued(), &mine[..], true),
            ("not due yet", later, &mine[..], false),
            ("queued before the clock was set back", set_back, &mine[..], true),
            ("another profile", queued(), &[Profile::new("other")][..], false),
            ("no profile", queued(), &[][..], false),
            ("held already", running(Checkpoint::NotBegun).0, &mine[..], false),
        ];
        for (name, mut record, profiles, expected) in cases {
            assert_eq!(is_claimable(&record, profiles, NOW), expected, "{name}");
            for held in [Visibility::Unpromised, Visibility::Task] {
                record.job.new.visibility = held;
                assert!(!is_claimable(&record, profiles, NOW), "{name}, {held:?}");
                assert_eq!(
                    is_claimable_by_id(&record, profiles, NOW),
                    expected,
                    "{name}, {held:?}"
                );
            }
        }
    }

    #[test]
    fn every_claim_raises_the_fence() {
        let mut record = queued();
        let worker = WorkerId::new("w");
        let first = claim(&mut record, &worker, NOW, NOW);
        record.job.state = JobState::Queued { run_at: NOW };
        let second = claim(&mut record, &worker, NOW, NOW);
        assert_eq!((first.fence, second.fence), (Fence(1), Fence(2)));
        assert!(record.job.was_claimed());
    }

    #[test]
    fn a_job_with_an_initial_worker_is_about_to_be_sent_under_the_key_of_its_first_try() {
        let initial_worker =
            InitialWorker { worker: WorkerId::new("w"), lease: Duration::from_secs(30) };
        let mut record = queued();
        let fresh = RecoverySemantics {
            resend: ResendPolicy::Never,
            resume: ResumePolicy::Always,
            can_stop: true,
        };
        let Approach::Begin { key } = approach(&record.job, fresh, NOW) else {
            panic!("it is new")
        };
        claim_on_insert(&mut record, &initial_worker, NOW);
        assert_eq!(record.job.checkpoint, Checkpoint::Beginning { key });
        let until = NOW.after(initial_worker.lease);
        assert_eq!(record.holder, Some(Holder { worker: initial_worker.worker.clone(), until }));
        let mut taken_up = queued();
        taken_up.job.checkpoint = Checkpoint::Running(remote());
        claim_on_insert(&mut taken_up, &initial_worker, NOW);
        assert_eq!(taken_up.job.checkpoint, Checkpoint::Running(remote()));
    }
}
