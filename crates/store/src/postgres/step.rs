//! Runs steps. Each step runs in a separate task, so that a caller that goes away leaves no transaction open. It is retried
//! if it conflicted with another step or the server was briefly unavailable.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outlast_core::{Rev, StoreError};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::StoreShared;
use super::fault::Fault;
use super::tx::Tx;
use crate::unavailable;

/// The time for which a step is retried before the store counts as unavailable. A promotion takes less.
const TRY_FOR: Duration = Duration::from_secs(5);

/// The work of a step between the beginning and the commit of its transaction: it loads, asks the rules, and adds the writes.
/// It runs again if the transaction must be repeated.
pub(super) type Work<I, T> = for<'a> fn(&'a I, &'a mut Tx) -> BoxFuture<'a, Result<T, Fault>>;

/// The amount of work that a crash of the database may lose.
#[derive(Clone, Copy)]
pub(super) enum Durability {
    /// Nothing that was acknowledged.
    Commit,
    /// The last moments: for values that are only displayed.
    Soon,
}

impl StoreShared {
    /// Runs the step. Returns its result and its change number.
    pub(super) async fn step<I, T>(
        self: &Arc<Self>,
        durability: Durability,
        input: I,
        work: Work<I, T>,
    ) -> Result<(T, Rev), StoreError>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let shared = Arc::clone(self);
        let (answer, answered) = oneshot::channel();
        // One type of task for all steps.
        let task: BoxFuture<'static, ()> = Box::pin(async move {
            // A caller that has gone away needs no answer.
            let _ = answer.send(shared.try_step(durability, &input, work).await);
        });
        tokio::spawn(task);
        Ok(answered.await.map_err(unavailable)??)
    }

    /// Runs the step within a task that is never dropped.
    pub(super) async fn try_step<I: Sync, T>(
        &self,
        durability: Durability,
        input: &I,
        work: Work<I, T>,
    ) -> Result<(T, Rev), Fault> {
        let deadline = Instant::now() + TRY_FOR;
        let mut pause = Duration::from_millis(5);
        let mut is_first = true;
        loop {
            match self.once(durability, input, work).await {
                Err(fault) if fault.is_transient() && Instant::now() + pause < deadline => {
                    if std::mem::take(&mut is_first) {
                        let seconds = TRY_FOR.as_secs();
                        tracing::info!(error = %fault.describe(), "failed to run a database step; retrying for up to {seconds} s");
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_millis(500));
                }
                done => return done,
            }
        }
    }

    async fn once<I: Sync, T>(
        &self,
        durability: Durability,
        input: &I,
        work: Work<I, T>,
    ) -> Result<(T, Rev), Fault> {
        let begin = match durability {
            Durability::Commit => "begin",
            Durability::Soon => "begin; set local synchronous_commit = off",
        };
        let Some(lineage) = &self.lineage else {
            return Err(unavailable("it was opened only to be read").into());
        };
        let client = self.pool.get().await?;
        let expected = lineage.expected_values();
        let mut tx =
            Tx::new(client, self.time.given_time(), begin, self.limits.statement, expected);
        match work(input, &mut tx).await {
            Ok(value) => {
                let rev = tx.commit().await?;
                if rev > Rev::default() {
                    self.wakeups.note_commit();
                    match durability {
                        Durability::Commit => lineage.saw(&expected, rev),
                        Durability::Soon => {}
                    }
                }
                Ok((value, rev))
            }
            Err(fault) => {
                if fault.is_silence() {
                    self.session.want_check();
                }
                tx.roll_back().await;
                Err(fault)
            }
        }
    }
}
