//! Notices of ends, and the text so far.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use outlast_core::{NotDelivered, Notice, NoticeClaim, Notifier, Store};
use outlast_engine::Options;
use outlast_testkit::scripted::Act;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bench::{Bench, deliver, millis, research, seconds};

/// A receiver that fails a given number of times, and records each notice with its time.
#[derive(Debug, Default)]
struct Receiver {
    failures: Mutex<u32>,
    reported: Mutex<Vec<(Instant, String)>>,
    /// Set if every delivery waits.
    waits: Option<Arc<Notify>>,
}

impl Receiver {
    fn failing(times: u32) -> Arc<Self> {
        Arc::new(Self { failures: Mutex::new(times), ..Self::default() })
    }

    fn reported(&self) -> Vec<(Instant, String)> {
        self.reported.lock().unwrap().clone()
    }
}

#[async_trait]
impl Notifier for Receiver {
    async fn deliver(&self, notice: &Notice) -> Result<(), NotDelivered> {
        self.reported.lock().unwrap().push((Instant::now(), notice.body.clone()));
        if let Some(waits) = &self.waits {
            waits.notified().await;
        }
        let mut failures = self.failures.lock().unwrap();
        if *failures == 0 {
            return Ok(());
        }
        *failures -= 1;
        Err(NotDelivered { why: "down".to_owned(), detail: None })
    }
}

fn telling(receiver: &Arc<Receiver>) -> Options {
    let notifier: Arc<dyn Notifier> = receiver.clone();
    Options { notifier: Some(notifier), ..Options::default() }
}

async fn is_kept(bench: &Bench) -> bool {
    let claim = bench.store.claim_notice(seconds(60)).await.unwrap();
    claim != NoticeClaim::NoneDue { next: None }
}

/// G7: one notice as soon as the job has ended, even if two processes could deliver it.
#[tokio::test(start_paused = true)]
async fn g7_an_end_sends_one_notice_at_once_from_one_process() {
    let bench = Bench::new();
    let receiver = Receiver::failing(0);
    let process = bench.process_with(telling(&receiver)).await;
    let _other = bench.process_with(telling(&receiver)).await;
    let id = process.under_way(&bench, 1).await;
    let since = Instant::now();
    deliver(&bench, 1);
    process.end(&id).await;
    tokio::time::sleep(seconds(3600)).await;
    let reported = receiver.reported();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].0 - since < millis(500), "{:?}", reported[0].0 - since);
    assert!(reported[0].1.contains(&id.to_string()));
    assert!(!is_kept(&bench).await);
}

/// G7: a process without a notifier leaves the notice to one that has a notifier.
#[tokio::test(start_paused = true)]
async fn g7_another_process_sends_the_notice_of_a_settled_job() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    deliver(&bench, 1);
    process.end(&id).await;
    process.leave().await;
    let receiver = Receiver::failing(0);
    let _later = bench.process_with(telling(&receiver)).await;
    bench.until(|| receiver.reported().len() == 1).await;
}

/// G7: growing waits, eight deliveries within about a day, then nothing is kept of the notice.
#[tokio::test(start_paused = true)]
async fn g7_a_receiver_that_is_down_is_tried_again_and_then_no_more() {
    let bench = Bench::new();
    let receiver = Receiver::failing(u32::MAX);
    let process = bench.process_with(telling(&receiver)).await;
    let id = process.start(research()).await;
    bench.quiet().await;
    process.cancel(&id).await;
    tokio::time::sleep(seconds(48 * 3600)).await;
    let reported: Vec<Instant> = receiver.reported().iter().map(|(at, _)| *at).collect();
    assert_eq!(reported.len(), 8);
    let waits: Vec<u64> = reported.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert!(waits.is_sorted() && waits[0] < 3 && waits[6] > 3600, "{waits:?}");
    assert!(!is_kept(&bench).await);
}

/// G7: a worker that is shutting down delivers the notices of what it has settled, and does not wait for ever.
#[tokio::test(start_paused = true)]
async fn g7_a_leaving_worker_delivers_first_and_not_for_ever() {
    let bench = Bench::new();
    let receiver =
        Arc::new(Receiver { waits: Some(Arc::new(Notify::new())), ..Receiver::default() });
    let process = bench.process_with(telling(&receiver)).await;
    let id = process.under_way(&bench, 1).await;
    deliver(&bench, 1);
    process.end(&id).await;
    bench.until(|| receiver.reported().len() == 1).await;
    let since = Instant::now();
    process.leave().await;
    assert!(since.elapsed() > seconds(5) && since.elapsed() < seconds(15));
    assert!(is_kept(&bench).await || bench.store.claim_notice(seconds(1)).await.is_ok());
    let (slow, waits) = (receiver.waits.clone().unwrap(), Instant::now());
    let process = bench.process_with(telling(&receiver)).await;
    bench.until(|| receiver.reported().len() == 2).await;
    assert!(waits.elapsed() > seconds(30), "the claim of the first ends before");
    slow.notify_one();
    process.leave().await;
    assert!(!is_kept(&bench).await);
}

/// G7: a worker that is shutting down waits for a second delivery if it comes soon, and leaves a later one to the
/// next process.
#[tokio::test(start_paused = true)]
async fn g7_a_leaving_worker_tries_once_more_if_that_is_soon() {
    for (failures, tries, left) in [(1, 2, false), (2, 2, true)] {
        let bench = Bench::new();
        let receiver = Receiver::failing(failures);
        let process = bench.process_with(telling(&receiver)).await;
        let id = process.under_way(&bench, 1).await;
        deliver(&bench, 1);
        process.end(&id).await;
        bench.until(|| receiver.reported().len() == 1).await;
        let took = process.leave().await;
        assert!(took < seconds(2), "{took:?}");
        assert_eq!(receiver.reported().len(), tries);
        assert_eq!(is_kept(&bench).await, left);
    }
}

/// G8: the text is shown at once, then with a step at most every two seconds, and removed with the end.
#[tokio::test(start_paused = true)]
async fn g8_the_text_so_far_is_shown_now_and_then_and_ends_with_the_try() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    let text = async || bench.job(&id).await.partial.map(|text| text.to_string());
    assert_eq!(text().await, None);
    // A run that ends at once shows none.
    tokio::time::sleep(millis(60)).await;
    bench.provider.act(1, Act::Writes(50, "# One"));
    bench.quiet().await;
    assert_eq!(text().await.as_deref(), Some("# One"));
    bench.provider.act(1, Act::Writes(51, "# One, two"));
    bench.provider.act(1, Act::Writes(52, "# One, two, three"));
    tokio::time::sleep(millis(1900)).await;
    assert_eq!(text().await.as_deref(), Some("# One"), "less often");
    tokio::time::sleep(millis(200)).await;
    bench.provider.act(1, Act::Writes(53, "# One, two, three, four"));
    bench.quiet().await;
    assert_eq!(text().await.as_deref(), Some("# One, two, three, four"), "with the next step");
    deliver(&bench, 1);
    process.end(&id).await;
    assert_eq!(text().await, None);
}
