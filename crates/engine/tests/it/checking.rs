//! Checks of reports: one at a time, and one for all that start at once (J1).

use outlast_core::{CallMode, FetchConsent, Job, JobId};

use crate::bench::{Bench, Process, deliver, owner, research};

async fn check(process: &Process, report: &Job, mode: CallMode) -> (JobId, bool) {
    let started = process.engine.start_check(report, "a test", FetchConsent::NotGiven, mode).await;
    let started = started.unwrap().expect("there is a report");
    (started.job.id, started.existed)
}

/// Returns a report that was not checked.
async fn report(bench: &Bench, process: &Process) -> Job {
    let id = process.start(research()).await;
    bench.quiet().await;
    deliver(bench, 1);
    process.end(&id).await.job
}

/// J1: a check that starts by itself and one that a person asks for are one job, whichever is faster.
#[tokio::test(start_paused = true)]
async fn j1_checks_that_start_at_once_are_one_job() {
    let bench = Bench::new();
    let process = bench.process().await;
    let other = bench.process().await;
    let report = report(&bench, &process).await;
    let attach = CallMode::Attach;
    let ((first, _), (second, _)) =
        tokio::join!(check(&process, &report, attach), check(&other, &report, attach));
    assert_eq!(first, second);
    assert_eq!(check(&other, &report, CallMode::Fresh).await, (first, true), "one at a time");
    bench.quiet().await;
    deliver(&bench, 2);
    process.end(&first).await;
    // One that looked for a result before the end, and starts after it.
    assert_eq!(check(&other, &report, attach).await, (first, true));
    let (fresh, existed) = check(&other, &report, CallMode::Fresh).await;
    assert!(fresh != first && !existed, "a fresh one is another job");
    process.engine.cancel(&owner(), &fresh).await.unwrap();
    assert!(!check(&other, &report, attach).await.1, "a cancelled check is no result");
}
