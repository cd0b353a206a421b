//! Combines concurrent calls in one transaction: while one transaction is running, new calls are collected for the next.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use outlast_core::StoreError;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::StoreShared;
use super::fault::Fault;
use super::step::Durability;
use crate::{copy_error, unavailable};

/// The maximum number of calls in one transaction.
const MOST_TOGETHER: usize = 64;

/// The maximum number of concurrent transactions of one kind in a process.
const AT_ONCE: usize = 2;

/// The channel for the answer to a call.
pub(super) type AnswerSender<A> = oneshot::Sender<Result<A, StoreError>>;

/// A call and the channel for its answer.
pub(super) type Call<C, A> = (C, AnswerSender<A>);

/// The channel to the task that collects calls of one kind.
pub(super) type Queue<C, A> = OnceLock<mpsc::UnboundedSender<Call<C, A>>>;

/// Runs a call together with others.
pub(super) async fn ask<C, A>(queue: &Queue<C, A>, call: C) -> Result<A, StoreError> {
    let (answer, answered) = oneshot::channel();
    if queue.get().is_none_or(|queue| queue.send((call, answer)).is_err()) {
        return Err(unavailable("it was closed"));
    }
    answered.await.map_err(|_| unavailable("it was closed"))?
}

/// Runs the calls in one transaction and answers them. If the transaction certainly did not commit, one of the calls may be
/// the cause: then each call runs alone.
pub(super) async fn carry_out<C: Clone, A, Running>(
    calls: Vec<Call<C, A>>,
    run: impl Fn(Arc<[C]>) -> Running,
) where
    Running: Future<Output = Result<Vec<Result<A, StoreError>>, Fault>>,
{
    let (calls, answers): (Vec<C>, Vec<AnswerSender<A>>) = calls.into_iter().unzip();
    let calls: Arc<[C]> = calls.into();
    let done = match run(Arc::clone(&calls)).await {
        Ok(done) => done,
        Err(fault) if calls.len() > 1 && !matches!(fault, Fault::CommitUnknown(_)) => {
            let mut done = Vec::with_capacity(calls.len());
            for call in calls.iter() {
                let alone = run(Arc::from([call.clone()])).await.map_err(StoreError::from);
                done.push(alone.and_then(|mut alone| {
                    alone.pop().unwrap_or_else(|| Err(unavailable("no answer came")))
                }));
            }
            done
        }
        Err(fault) => {
            let error = StoreError::from(fault);
            calls.iter().map(|_| Err(copy_error(&error))).collect()
        }
    };
    for (answer, done) in answers.into_iter().zip(done) {
        // A caller that has gone away does not need the answer.
        let _ = answer.send(done);
    }
}

impl StoreShared {
    /// Starts the tasks that collect calls.
    pub(super) fn gather(shared: &Arc<Self>) {
        // Each queue is set once, here.
        let _ = shared.writes.set(Self::spawn_gatherer(shared, |shared, calls| {
            shared.write_together(Durability::Commit, calls)
        }));
        let _ = shared.notes.set(Self::spawn_gatherer(shared, |shared, calls| {
            shared.write_together(Durability::Soon, calls)
        }));
        let _ = shared.inserts.set(Self::spawn_gatherer(shared, Self::insert_together));
        let _ = shared.claims.set(Self::spawn_gatherer(shared, Self::claim_together));
    }

    /// Starts the task that collects calls and passes them to `run`. It holds a weak reference to the store, so that it ends
    /// with the store.
    fn spawn_gatherer<C, Running>(
        shared: &Arc<Self>,
        run: impl Fn(Arc<Self>, Vec<C>) -> Running + Send + Sync + 'static,
    ) -> mpsc::UnboundedSender<C>
    where
        C: Send + 'static,
        Running: Future<Output = ()> + Send + 'static,
    {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let (slots, weak) = (Arc::new(Semaphore::new(AT_ONCE)), Arc::downgrade(shared));
        // Boxed, so that Tokio's part of a task is compiled once for all of them.
        let gathering = async move {
            while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
                let mut calls = Vec::new();
                if receiver.recv_many(&mut calls, MOST_TOGETHER).await == 0 {
                    return;
                }
                let Some(shared) = weak.upgrade() else { return };
                tokio::spawn(run(shared, calls).map(|()| drop(slot)).boxed());
            }
        };
        tokio::spawn(gathering.boxed());
        sender
    }
}
