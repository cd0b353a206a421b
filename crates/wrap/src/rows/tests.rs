use std::time::Duration;

use outlast_core::{ClaimedJob, Store, StoreError, StoreMethod, StoreWrapper, WorkerId};
use outlast_engine::Options;
use outlast_store::{MemoryStore, SystemClock};

use super::*;

/// A store that gives no job to a worker: a worker that asks for one waits.
struct Untaken(MemoryStore);

#[async_trait]
impl StoreWrapper for Untaken {
    fn inner(&self) -> &dyn Store {
        &self.0
    }

    fn after(&self, _method: StoreMethod, _error: Option<&StoreError>) {}

    async fn claim_by_id(
        &self,
        _worker: &WorkerId,
        _profiles: &[Profile],
        _id: &JobId,
        _lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        std::future::pending().await
    }
}

struct UntakenRows(Arc<Untaken>);

#[async_trait]
impl CallRows for UntakenRows {
    async fn engine(&self, providers: Providers, stop: Shutdown) -> Result<Engine, String> {
        let made = Engine::new(self.0.clone(), providers, Options::default(), stop).await;
        made.map(|(engine, _)| engine).map_err(|error| error.to_string())
    }

    fn owner(&self) -> OwnerId {
        OwnerId::new("local")
    }

    fn keep(&self) -> Duration {
        Duration::from_secs(60)
    }

    async fn close(&self) {}
}

#[tokio::test]
async fn h4_a_job_that_is_cancelled_before_it_is_taken_is_reported() {
    let store = Arc::new(Untaken(MemoryStore::new(Arc::new(SystemClock))));
    let (dropped, mut cancelled) = mpsc::unbounded_channel();
    let rows = Rows::new(Arc::new(UntakenRows(store.clone())), dropped);
    let row = rows.make("s", "t", "{}").await.unwrap();
    Store::cancel(&*store, &Scope::Owner(OwnerId::new("local")), &row.id).await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(30), cancelled.recv()).await;
    assert_eq!(told.unwrap().unwrap().id, row.id);
}
