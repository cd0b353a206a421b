//! The memory store as a model of another store: random operations on both, and a comparison of everything a
//! reader can see.
//!
//! The suite tests known orders of operations; this finds others. A case is a short list of operations. A list
//! that fails is reduced to the shortest one that still fails, and is reported with the command that repeats
//! it.

mod operation;
mod questions;
mod settings;
mod view;
mod pair;

use std::fmt::Write;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_core::{Clock, Store};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tokio::runtime::Runtime;

use operation::Op;
use pair::StorePair;
use settings::Settings;

/// The number of cases that run in parallel.
const THREADS: usize = 2;

/// The store under test.
pub trait TestedStore {
    /// One of several handles on the same jobs, as in several processes.
    type Handle: Store;

    /// True if a new job can start with a worker.
    const CARRIES: bool = true;

    /// True if a request in flight stays with a killed worker until its lease has expired, because the worker's
    /// death is not certain.
    const BEGUN_WAITS_FOR_ITS_LEASE: bool = false;

    /// Creates an empty store with the same guarantees, to compare with.
    fn model(&self, clock: Arc<dyn Clock>) -> Box<dyn Store>;

    /// Opens a handle on the jobs in `dir`, which is empty for the first one.
    fn open(&self, clock: Arc<dyn Clock>, dir: &Path) -> impl Future<Output = Self::Handle>;

    /// Drops a handle as a crash does; returns when other handles can notice it.
    fn crash(&self, handle: Self::Handle) -> impl Future<Output = ()>;

    /// Closes the handles of a successful case, whose workers are deregistered.
    fn end(&self, handles: Vec<Self::Handle>) -> impl Future<Output = ()> {
        drop(handles);
        std::future::ready(())
    }

    /// Returns the problems that the store itself finds in its data.
    fn problems(&self, handle: &Self::Handle) -> impl Future<Output = Vec<String>>;
}

/// Runs this number of cases, unless the environment overrides it; panics at the first difference, with the
/// operations that lead to it.
pub fn run(subject: &(impl TestedStore + Sync), cases: u64) {
    let settings = Settings::read(cases);
    let next = AtomicU64::new(0);
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        loop {
            let number = next.fetch_add(1, Ordering::SeqCst);
            if number >= settings.cases {
                return Ok(());
            }
            if let Err(failure) = case(subject, &runtime, settings.seed.wrapping_add(number)) {
                // One failure is enough.
                next.store(settings.cases, Ordering::SeqCst);
                return Err(failure);
            }
        }
    };
    let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for failure in results {
        failure.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Generates a list of operations and runs it; a failure names the shortest list that still fails.
fn case(subject: &impl TestedStore, runtime: &Runtime, seed: u64) -> Result<(), String> {
    let played = runner(seed).run(&operation::sequences(), |ops| {
        match catch_unwind(AssertUnwindSafe(|| runtime.block_on(play(subject, &ops)))) {
            Ok(played) => played.map_err(TestCaseError::fail),
            Err(_) => Err(TestCaseError::fail("a panic: see above")),
        }
    });
    played.map_err(|error| match error {
        TestError::Fail(why, ops) => failure(&ops, why.message(), seed),
        TestError::Abort(why) => format!("seed {seed}: {why}"),
    })
}

/// A runner with its own seed, so that a case can be repeated alone.
fn runner(seed: u64) -> TestRunner {
    let config = Config {
        cases: 1,
        max_shrink_iters: 10_000,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

async fn play(subject: &impl TestedStore, ops: &[Op]) -> Result<(), String> {
    let mut pair = StorePair::new(subject).await;
    for (number, op) in ops.iter().enumerate() {
        pair.step(op).await.map_err(|why| format!("after step {}: {why}", number + 1))?;
    }
    pair.end().await
}

fn failure(ops: &[Op], why: &str, seed: u64) -> String {
    let mut failure = String::from("the store differs from its model\n");
    for (number, op) in ops.iter().enumerate() {
        let _ = writeln!(failure, "  {:>2}  {op:?}", number + 1);
    }
    let _ = writeln!(failure, "{why}");
    let _ = write!(failure, "again: {}", settings::replay(seed));
    failure
}

#[cfg(test)]
mod tests {
    use proptest::strategy::{Strategy, ValueTree};

    use super::*;

    fn drawn(seed: u64) -> Vec<Op> {
        operation::sequences().new_tree(&mut runner(seed)).unwrap().current()
    }

    #[test]
    fn the_same_seed_draws_the_same_operations() {
        assert_eq!(format!("{:?}", drawn(7)), format!("{:?}", drawn(7)));
        assert_ne!(format!("{:?}", drawn(7)), format!("{:?}", drawn(8)));
    }
}
