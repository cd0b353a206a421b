//! The memory store as a model of another: random operations on both, and everything a reader can see compared.
//!
//! The suite tests known orders of operations; this finds others. A case is a short list of operations. A list that
//! fails is cut down to the shortest that still fails, and comes with the command that runs it again.

mod operation;
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

/// How many cases run at once.
const THREADS: usize = 2;

/// The store under test.
pub trait TestedStore {
    /// One of several handles on the same jobs, as of one of several processes.
    type Handle: Store;

    /// Whether a new job can have a carrier.
    const CARRIES: bool = true;

    /// Whether a request on its way stays with a worker that was killed until its lease is over, because its death is not certain.
    const BEGUN_WAITS_FOR_ITS_LEASE: bool = false;

    /// Makes an empty store of the same promises, to compare with.
    fn model(&self, clock: Arc<dyn Clock>) -> Box<dyn Store>;

    /// Opens a handle on the jobs in `dir`; the first one finds it empty.
    fn open(&self, clock: Arc<dyn Clock>, dir: &Path) -> impl Future<Output = Self::Handle>;

    /// Lets go of a handle as a crash does; returns when other handles can know of it.
    fn crash(&self, handle: Self::Handle) -> impl Future<Output = ()>;

    /// Takes the handles of a case that went well, whose workers are dismissed.
    fn end(&self, handles: Vec<Self::Handle>) -> impl Future<Output = ()> {
        drop(handles);
        std::future::ready(())
    }

    /// What the store itself finds wrong with its data.
    fn problems(&self, handle: &Self::Handle) -> impl Future<Output = Vec<String>>;
}

/// Runs so many cases, unless the environment says otherwise; panics at the first difference, with the operations that lead to it.
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

/// Draws a list of operations and runs it; a failure names the shortest list that still fails.
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

/// One case of its own seed, so that it can be run again alone.
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
