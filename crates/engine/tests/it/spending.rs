//! The amounts that a start reserves, and its refusals (G6): the engine knows the provider's prices, the store
//! decides.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_core::{
    BeginError, BudgetLimit, Cost, Day, NanoUsd, NewJob, Profile, Provider, ProviderError,
    RecoverySemantics, RemoteRun, Request, Run, Scope, SpendBy, SpendLimits, SpendQuery,
    StopOutcome, StoreError,
};
use outlast_engine::{Engine, Options, Providers, Shutdown};
use outlast_store::{MemoryStore, SystemClock};
use outlast_testkit::scripted::{Act, Handle, Scripted};
use serde_json::json;

use crate::bench::{Bench, research};
use crate::overheard::Overheard;

const CENT: u64 = 10_000_000;

/// A provider with a price.
struct Priced {
    provider: Handle,
    typical: Cost,
    caps: bool,
}

#[async_trait]
impl Provider for Priced {
    fn name(&self) -> &'static str {
        self.provider.name()
    }

    fn recovery_semantics(&self, request: &Request) -> RecoverySemantics {
        self.provider.recovery_semantics(request)
    }

    fn typical_cost(&self, _request: &Request) -> Cost {
        self.typical
    }

    fn default_cap(&self, _request: &Request) -> Option<NanoUsd> {
        self.caps.then_some(NanoUsd(55 * CENT))
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        self.provider.begin(request, key).await
    }

    async fn resume(
        &self,
        request: &Request,
        run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        self.provider.resume(request, run).await
    }

    async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        self.provider.stop(run).await
    }
}

async fn engine(typical: Option<u64>, caps: bool, spend_limits: SpendLimits) -> Engine {
    let typical = typical.map_or(Cost::Unknown, |cents| Cost::Estimate(NanoUsd(cents * CENT)));
    let provider = Priced { provider: Handle(Scripted::paid()), typical, caps };
    let mut providers = Providers::new();
    providers.insert(Scripted::profile(), Arc::new(provider));
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let options = Options { spend_limits, ..Options::default() };
    Engine::new(store, providers, options, Shutdown::new()).await.unwrap().0
}

/// Returns a question with a budget in cents.
fn asked(budget: Option<u64>) -> NewJob {
    let ask = json!({ "messages": [], "budget": budget.map(|cents| cents * CENT) }).into();
    NewJob { request: ask, ..research() }
}

/// Returns the reserved amount in cents.
async fn reserved(engine: &Engine) -> u64 {
    let query = SpendQuery { by: SpendBy::Day, since: Day(0) };
    let sums = engine.spend(&Scope::Operator, &query).await.unwrap();
    sums.iter().map(|sum| sum.reserved.0 / CENT).sum()
}

/// G6: if the provider cannot stop at a budget, one below the typical cost is refused, and an accepted start says so.
#[tokio::test]
async fn g6_a_budget_is_kept_by_the_provider_or_refused() {
    // The typical cost, whether the provider stops at a budget (55 by default), the budget, and the reserved amount.
    let table = [
        (Some(50), false, Some(49), None),
        (Some(50), false, Some(60), Some(50)),
        (None, false, Some(60), None),
        (Some(50), true, Some(49), Some(49)),
        (Some(50), true, Some(60), Some(55)),
        (Some(50), true, None, Some(55)),
        (None, false, None, Some(0)),
    ];
    for (typical, caps, budget, expected) in table {
        let engine = engine(typical, caps, SpendLimits::default()).await;
        let started = engine.start(asked(budget), None).await;
        match (started, expected) {
            (Ok(started), Some(expected)) => {
                assert_eq!(reserved(&engine).await, expected, "{typical:?} {budget:?}");
                let new = &started.job.new;
                let note = engine.expects(&new.profile, &new.request).budget_note;
                assert_eq!(note.is_some(), budget.is_some() && !caps, "{note:?}");
            }
            (Err(StoreError::BudgetExceeded(refused)), None) => {
                assert_eq!(refused.limit, BudgetLimit::Ask);
                assert_eq!(reserved(&engine).await, 0);
            }
            (other, _) => panic!("{typical:?} {caps} {budget:?}: {other:?}"),
        }
    }
}

/// G6: limits of an owner; the library and workflows are free under every limit.
#[tokio::test]
async fn g6_what_is_free_is_started_whatever_the_limit() {
    let nothing = Some(NanoUsd(0));
    let limits = SpendLimits { per_job: nothing, per_day: nothing };
    let engine = engine(Some(50), false, limits).await;
    let refused = engine.start(asked(None), None).await;
    assert!(matches!(refused, Err(StoreError::BudgetExceeded(_))), "{refused:?}");
    let library = NewJob { profile: Profile::new("library 0123456789abcdef"), ..asked(None) };
    engine.start(library, None).await.unwrap();
    let workflow = NewJob { request: json!({ "message": "now" }).into(), ..research() };
    engine.start(workflow, None).await.unwrap();
    assert_eq!(reserved(&engine).await, 0);
}

/// C10: a question that is likely to cost over a dollar causes a warning before anything is spent; a cheap one does
/// not.
#[tokio::test]
async fn a_question_that_is_likely_to_cost_much_is_warned_of() {
    let log = Overheard::start();
    for (cents, warnings) in [(99, 0), (101, 1)] {
        let engine = engine(Some(cents), false, SpendLimits::default()).await;
        engine.start(research(), None).await.unwrap();
        assert_eq!(log.lines_with("likely to cost over $1").len(), warnings, "{cents}");
    }
}

/// B15: the log line of an end names the paid amount, but not if the job is free or its cost is unknown.
#[tokio::test(start_paused = true)]
async fn a_completed_job_is_logged_with_what_it_cost() {
    let costs = [Cost::Reported(NanoUsd(5 * CENT)), Cost::Reported(NanoUsd(0)), Cost::Unknown];
    for (cost, is_named) in costs.into_iter().zip([true, false, false]) {
        let log = Overheard::start();
        let bench = Bench::new();
        let process = bench.process().await;
        let id = process.under_way(&bench, 1).await;
        bench.provider.act(1, Act::DoneFor("because", cost));
        process.end(&id).await;
        bench.quiet().await;
        let lines = log.lines_with("Job completed");
        assert_eq!(
            lines.iter().filter(|line| line.contains("cost=")).count(),
            usize::from(is_named)
        );
    }
}
