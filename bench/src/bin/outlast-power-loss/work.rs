//! Work that leaves every kind of write behind, and prints each acknowledged change on a line.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Body, CancelOutcome, Checkpoint, Cost, InsertOutcome, JobId, NewJob, Output, OwnerId,
    RemoteRun, Scope, Settlement, Store, Usage, WorkerId,
};
use outlast_store::{SqliteStore, SystemClock};
use outlast_testkit::store_suite::{a_job, an_insert, profiles};

const CALLERS: usize = 8;
/// The number of times that the store is opened: closing it empties its log.
const OPENED: usize = 3;
const LEASE: Duration = Duration::from_secs(600);

pub(crate) async fn run(folder: &Path, jobs: usize) {
    for _ in 0..OPENED {
        let store =
            Arc::new(SqliteStore::open(&folder.join("jobs.db"), Arc::new(SystemClock)).unwrap());
        let each = jobs.div_ceil(CALLERS * OPENED);
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    for _ in 0..each {
                        one_job(&*store, caller).await;
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
        store.close().await;
    }
}

/// Inserts a job, then runs one to its end, or cancels it.
async fn one_job(store: &dyn Store, caller: usize) {
    let owner = OwnerId::new(format!("caller-{caller}"));
    let insert = an_insert(NewJob { owner: owner.clone(), ..a_job() });
    let InsertOutcome::New(made) = store.insert(insert).await.unwrap() else {
        panic!("no key, no other job")
    };
    say("inserted", &made.id);
    if fastrand::u8(..) < 30 {
        let cancelled = store.cancel(&Scope::Owner(owner), &made.id).await.unwrap();
        if matches!(cancelled, CancelOutcome::Now(_)) {
            say("cancelled", &made.id);
        }
        return;
    }
    let worker = WorkerId::new(format!("worker-{caller}"));
    let Some(claimed) = store.claim(&worker, &profiles(), LEASE).await.unwrap() else { return };
    let id = &claimed.lease.job;
    let run = RemoteRun {
        provider: "perplexity".into(),
        id: format!("run-{id}"),
        cursor: None,
        begun_at: store.now(),
    };
    // Its owner may have cancelled it meanwhile.
    if store.checkpoint(&claimed.lease, &Checkpoint::Running(run)).await.is_err() {
        return;
    }
    say("begun", id);
    let output = Arc::new(Output {
        body: Body::report(report(id), Vec::new()),
        model: None,
        usage: Usage::default(),
        cost: Cost::Unknown,
    });
    if store.settle(&claimed.lease, Settlement::Succeed { output, raw: None }).await.is_ok() {
        say("settled", id);
    }
}

/// Returns the text of a job's report, which is long enough for several pages.
pub(crate) fn report(id: &JobId) -> String {
    format!("The report of {id}. ").repeat(200)
}

/// Prints each line in one write, so that the record has it in the right place.
fn say(what: &str, id: &JobId) {
    std::io::stdout().lock().write_all(format!("{what} {id}\n").as_bytes()).unwrap();
}
