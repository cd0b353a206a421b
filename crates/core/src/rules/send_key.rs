//! The key under which a request is sent, for providers that begin one run for each key.

use crate::{Job, JobId, RequestNote};

/// Returns the key of a job's next send; it changes after each failed attempt. The first send of a job that repeats
/// another uses that job's key.
pub(super) fn new_send_key(job: &Job) -> String {
    match job.new.request.note(RequestNote::RetryKey).filter(|_| job.failures.is_empty()) {
        Some(key) => key.to_owned(),
        None => format!("{}-{}", job.id, job.failures.len()),
    }
}

/// Returns the job that a send key belongs to, even if a provider extended the key to the id of its run.
pub fn job_of_key(key: &str) -> Option<JobId> {
    key.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Checkpoint;
    use crate::rules::tests::running;

    #[test]
    fn a_key_names_its_job() {
        let job = running(Checkpoint::NotBegun).0.job;
        let key = new_send_key(&job);
        assert_eq!(job_of_key(&key), Some(job.id));
        assert_eq!(job_of_key(&format!("{key}-and more")), Some(job.id));
        assert_eq!(job_of_key("resp_1"), None);
    }

    /// P6: a request that repeats a send of unknown outcome uses the same key.
    #[test]
    fn p6_a_retry_sends_the_key_of_the_job_it_repeats() {
        let mut job = running(Checkpoint::NotBegun).0.job;
        job.new.request = serde_json::json!({ "messages": [], "retry_key": "old-0" }).into();
        assert_eq!(new_send_key(&job), "old-0");
        // That run has failed: another one needs its own key.
        job.failures.push(crate::rules::tests::failure());
        assert_eq!(new_send_key(&job), "00000000000000000000000000000007-1");
    }
}
