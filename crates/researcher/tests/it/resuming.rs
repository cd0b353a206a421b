//! Interrupted runs go on at the step where they were (K2, K3).

use std::sync::Arc;

use outlast_core::{NanoUsd, ProviderErrorKind, StepState};
use outlast_researcher::Prices;
use outlast_simulator::{Options, Simulator};

use crate::bench::Bench;

/// K2: interrupted before and after every record of a step, a run gives the same text and sources, and buys no finished
/// step again.
#[tokio::test(flavor = "multi_thread")]
async fn k2_a_run_interrupted_at_every_step_gives_the_same_report() {
    let simulator = Arc::new(Simulator::start(Options::default()).await.unwrap());
    let whole = Bench::with(Arc::clone(&simulator), "whole=1", "-").await;
    let expected = whole.finish().await;
    let records = whole.steps().await.len() as i64 * 4;
    let mut stopped = 0;
    for record in (1..=records).step_by(23) {
        let lane = format!("record={record}");
        let bench = Bench::with(Arc::clone(&simulator), &lane, &lane).await;
        stopped += u32::from(bench.run_until(record).await);
        assert_eq!(bench.finish().await, expected, "{record}");
        // The requests that were on their way when the run was interrupted may have been answered.
        let again: u32 = bench.steps().await.iter().map(|step| step.resent).sum();
        assert!(bench.bought_again() <= u64::from(again), "{record}");
    }
    assert!(stopped as i64 * 23 > records * 8 / 10, "{stopped} of {records}");
}

/// K2: a run that is interrupted again and again comes to its end.
#[tokio::test(flavor = "multi_thread")]
async fn k2_a_run_interrupted_many_times_gives_the_same_report() {
    let simulator = Arc::new(Simulator::start(Options::default()).await.unwrap());
    let expected = Bench::with(Arc::clone(&simulator), "whole=1", "-").await.finish().await;
    let bench = Bench::with(Arc::clone(&simulator), "many=1", "many=1").await;
    let mut times = 0;
    while bench.run_until(2 * times + 40 * times / 7 + 9).await {
        times += 1;
    }
    assert!(times > 5, "{times}");
    assert_eq!(bench.finish().await, expected);
}

/// K3: a paid step without an answer ends the run with a question, unless sending it again is within the limit.
#[tokio::test(flavor = "multi_thread")]
async fn k3_a_paid_step_is_sent_again_only_within_the_limit() {
    let dollar = Some(NanoUsd(1_000_000_000));
    let prices = Prices { input: dollar, output: dollar, search: Some(NanoUsd(0)) };
    for (max_resend, is_sent_again) in [(0, false), (20_000_000, true)] {
        let mut bench = Bench::new("drop_after=100", "-").await;
        (bench.prices, bench.max_resend) = (prices, NanoUsd(max_resend));
        bench.request["budget"] = 1_000_000_000.into();
        let (output, _) = bench.try_finish().await;
        let error = output.unwrap_err();
        assert_eq!(error.kind, ProviderErrorKind::StepUnknown, "{error:?}");
        let resent: u64 =
            bench.steps().await.iter().map(|step| step.bound.0 * u64::from(step.resent)).sum();
        assert_eq!(resent > 0, is_sent_again);
        assert!(resent <= max_resend, "{resent}");
    }
}

/// K2: a worker that shuts down in the middle of an answer records it, and begins nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn k2_a_shutdown_records_the_steps_in_flight() {
    let simulator = Arc::new(Simulator::start(Options::default()).await.unwrap());
    let expected = Bench::with(Arc::clone(&simulator), "whole=1", "-").await.finish().await;
    let bench = Bench::with(simulator, "slow=300,winding=1", "winding=1").await;
    for kind in ["plan", "note", "section"] {
        bench.wind_down_at(kind).await;
        let steps = bench.steps().await;
        let open = steps.iter().filter(|step| step.state == StepState::Sending).count();
        assert_eq!(open, 0, "{kind}: {steps:?}");
    }
    assert_eq!(bench.finish().await, expected);
    assert_eq!(bench.bought_again(), 0);
}
