//! Concurrent callers of a store: inserts, and claims with their settlements.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Body, Cost, Insert, JobId, NewJob, Output, OwnerId, Settlement, Store, Usage, WorkerId,
};
use outlast_testkit::store_suite::{a_job, an_insert, profiles};
use tokio::sync::Mutex;
use tokio::time::Instant;

const LEASE: Duration = Duration::from_secs(30);

/// The choice to let callers share a commit with others.
#[derive(Clone, Copy)]
pub(crate) enum Commits {
    OneEach,
    Shared,
}

/// A number of callers, each of which repeats an operation this number of times.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    pub(crate) callers: usize,
    pub(crate) each: usize,
}

impl Work {
    pub(crate) fn jobs(self) -> usize {
        self.callers * self.each
    }

    /// Returns inserts per second. Every caller is a separate owner.
    pub(crate) async fn insert(self, store: &Arc<dyn Store>, commits: Commits) -> f64 {
        let (store, turn) = (Arc::clone(store), Arc::new(Mutex::new(())));
        self.pace(move |caller| {
            let (store, turn) = (Arc::clone(&store), Arc::clone(&turn));
            async move {
                let _alone = match commits {
                    Commits::OneEach => Some(turn.lock().await),
                    Commits::Shared => None,
                };
                store.insert(new_job(&format!("caller-{caller}"))).await.unwrap();
            }
        })
        .await
    }

    /// Returns the jobs per second that are claimed and settled.
    pub(crate) async fn claim_and_settle(self, store: &Arc<dyn Store>) -> f64 {
        let store = Arc::clone(store);
        self.pace(move |_| {
            let store = Arc::clone(&store);
            async move {
                assert!(settle_one(&*store, "bench").await.is_some(), "one for each step");
            }
        })
        .await
    }

    async fn pace<F, Fut>(self, step: F) -> f64
    where
        F: Fn(usize) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send,
    {
        let step = Arc::new(step);
        let begun = Instant::now();
        let callers: Vec<_> = (0..self.callers)
            .map(|caller| {
                let step = Arc::clone(&step);
                tokio::spawn(async move {
                    for _ in 0..self.each {
                        step(caller).await;
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
        self.jobs() as f64 / begun.elapsed().as_secs_f64()
    }
}

/// Returns a job of this owner that no limit affects.
pub(crate) fn new_job(owner: &str) -> Insert {
    an_insert(NewJob { owner: OwnerId::new(owner), ..a_job() })
}

/// Settles the jobs that the rounds of other measurements left.
pub(crate) async fn settle_all(store: &dyn Store) {
    while settle_one(store, "bench").await.is_some() {}
}

/// Claims a job for the worker and settles it; `None` if none is left.
pub(crate) async fn settle_one(store: &dyn Store, worker: &str) -> Option<JobId> {
    let claimed = store.claim(&WorkerId::new(worker), &profiles(), LEASE).await.unwrap()?;
    let output = Arc::new(Output {
        body: Body::report("because", Vec::new()),
        model: None,
        usage: Usage::default(),
        cost: Cost::Unknown,
    });
    store.settle(&claimed.lease, Settlement::Succeed { output, raw: None }).await.unwrap();
    Some(claimed.lease.job)
}
