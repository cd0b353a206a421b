//! Notifies the observers of an engine's writes. An observer that panics is reported; the write counts all the same.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;
use outlast_core::{FollowUp, Observer, StoreError, StoreEvent};

/// The observers of one engine.
#[derive(Clone, Default)]
pub struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    /// Adds an observer after the others.
    pub fn add(&mut self, observer: Arc<dyn Observer>) {
        self.0.push(observer);
    }

    /// Notifies each observer of a write.
    pub(crate) async fn notify(&self, event: StoreEvent<'_>) {
        follow_up(self.begin(event)).await;
    }

    /// Notifies each observer of the outcome of a write.
    pub(crate) async fn notify_result<'a, T>(
        &'a self,
        written: &'a Result<T, StoreError>,
        event: impl FnOnce(&'a T) -> StoreEvent<'a>,
    ) {
        self.notify(match written {
            Ok(written) => event(written),
            Err(error) => StoreEvent::WriteFailed(error),
        })
        .await;
    }

    /// Notifies each observer of a write, and returns the work that follows.
    pub(crate) fn begin<'a>(&'a self, event: StoreEvent<'a>) -> Vec<FollowUp<'a>> {
        let observe = |observer: &'a Arc<dyn Observer>| {
            let observed = catch_unwind(AssertUnwindSafe(|| observer.observe(&event)));
            observed.unwrap_or_else(|_| {
                report_panic();
                None
            })
        };
        self.0.iter().filter_map(observe).collect()
    }
}

/// Performs the work that follows an event.
pub(crate) async fn follow_up(work: Vec<FollowUp<'_>>) {
    for work in work {
        if AssertUnwindSafe(work).catch_unwind().await.is_err() {
            report_panic();
        }
    }
}

fn report_panic() {
    tracing::error!(
        "an observer of the store panicked; the write that it was notified of is stored"
    );
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observers").field(&self.0.len()).finish()
    }
}
