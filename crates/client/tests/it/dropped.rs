//! D10: the progress that counts, and the messages that are dropped.

use outlast_client::{CallOptions, DroppedMessages};
use outlast_testkit::peer::result;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::{calling, greeted, ms, remembering, timed_out};

fn patient() -> CallOptions {
    CallOptions::default().timeout(ms(300)).reset_timeout_on_progress()
}

#[tokio::test(start_paused = true)]
async fn d10_only_progress_with_this_requests_token_resets_it() {
    let (client, mut peer) = greeted().await;
    let first = calling(&client, patient());
    let asked = peer.call().await;
    let second = calling(&client, patient());
    let other = peer.call().await;
    assert_ne!(asked.token, other.token);
    for value in 1..=4 {
        sleep(ms(200)).await;
        peer.progress(&other.token, f64::from(value)).await;
        peer.progress(&json!("made up"), f64::from(value)).await;
    }
    peer.answer(&other.id, result("kept alive")).await;
    assert_eq!(second.await.unwrap().unwrap().text, "kept alive");
    let timed_out = timed_out(first.await.unwrap());
    assert_eq!((timed_out.notes, timed_out.elapsed.as_millis()), (0, 300));
    assert_eq!(
        client.dropped_messages(),
        DroppedMessages { stray_progress: 4, ..DroppedMessages::default() }
    );
}

/// The checklist of timeouts, I.
#[tokio::test(start_paused = true)]
async fn d10_progress_with_any_value_resets_the_timeout() {
    let (client, mut peer) = greeted().await;
    let (options, told) = remembering(patient());
    let call = calling(&client, options);
    let asked = peer.call().await;
    let values = [5.0, 5.0, 4.0, -1.0, 0.0];
    for value in values {
        sleep(ms(200)).await;
        peer.progress(&asked.token, value).await;
    }
    let timed_out = timed_out(call.await.unwrap());
    assert_eq!((timed_out.notes, timed_out.elapsed.as_millis()), (5, 1_300));
    let told: Vec<f64> = told.lock().unwrap().iter().map(|progress| progress.value).collect();
    assert_eq!(told, values);
    assert_eq!(client.dropped_messages(), DroppedMessages::default());
}

/// The checklist of timeouts, F: no error, no noise, and the connection keeps working.
#[tokio::test(start_paused = true)]
async fn d10_late_messages_are_dropped_and_counted() {
    let (client, mut peer) = greeted().await;
    let (options, told) = remembering(patient());
    let call = calling(&client, options);
    let asked = peer.call().await;
    timed_out(call.await.unwrap());
    assert_eq!(peer.hear().await["method"], "notifications/cancelled");
    peer.progress(&asked.token, 1.0).await;
    peer.answer(&asked.id, result("too late")).await;
    peer.answer(&json!(4711), result("not asked for")).await;

    let call = calling(&client, patient());
    let asked = peer.call().await;
    peer.answer(&asked.id, result("in time")).await;
    peer.answer(&asked.id, result("twice")).await;
    peer.progress(&asked.token, 1.0).await;
    assert_eq!(call.await.unwrap().unwrap().text, "in time");

    // After another round trip, every earlier message has been read.
    let call = calling(&client, patient());
    let asked = peer.call().await;
    peer.answer(&asked.id, result("in time")).await;
    assert_eq!(call.await.unwrap().unwrap().text, "in time");
    let dropped = DroppedMessages { stray_progress: 2, stray_answers: 3 };
    assert_eq!(client.dropped_messages(), dropped);
    assert!(told.lock().unwrap().is_empty(), "late progress is not passed on");
}

/// The checklist of timeouts, E.
#[tokio::test(start_paused = true)]
async fn d10_a_callback_that_panics_does_not_break_the_call() {
    let (client, mut peer) = greeted().await;
    let call = calling(&client, patient().on_progress(|_| panic!("a bug in the callback")));
    let asked = peer.call().await;
    for value in 1..=3 {
        sleep(ms(200)).await;
        peer.progress(&asked.token, f64::from(value)).await;
    }
    peer.answer(&asked.id, result("in time")).await;
    assert_eq!(call.await.unwrap().unwrap().text, "in time");
}

/// The checklist of timeouts, G.
#[tokio::test(start_paused = true)]
async fn a_token_or_an_id_returned_as_digits_is_recognised() {
    let (client, mut peer) = greeted().await;
    let (options, told) = remembering(patient());
    let call = calling(&client, options);
    let asked = peer.call().await;
    for token in [json!(asked.token.to_string()), json!(""), json!(true), json!(null)] {
        sleep(ms(50)).await;
        peer.progress(&token, 1.0).await;
    }
    peer.answer(&json!(asked.id.to_string()), result("known")).await;
    assert_eq!(call.await.unwrap().unwrap().text, "known");
    assert_eq!(told.lock().unwrap().len(), 1);
}

/// Progress before the answer is reported before the call returns, even if both arrive in one packet.
#[tokio::test(start_paused = true)]
async fn progress_is_reported_in_order_and_before_the_answer() {
    let (client, mut peer) = greeted().await;
    let (options, told) = remembering(CallOptions::default());
    let call = calling(&client, options);
    let asked = peer.call().await;
    for value in 1..=9 {
        peer.progress(&asked.token, f64::from(value)).await;
    }
    peer.answer(&asked.id, result("done")).await;
    call.await.unwrap().unwrap();
    let values: Vec<f64> = told.lock().unwrap().iter().map(|progress| progress.value).collect();
    assert_eq!(values, (1..=9).map(f64::from).collect::<Vec<_>>());
}

/// A callback that is slower than the server: the newest notifications are reported, memory is bounded, every
/// notification counts.
#[tokio::test(start_paused = true)]
async fn a_flood_of_progress_is_coalesced_and_still_counts() {
    let (client, mut peer) = greeted().await;
    let (options, told) = remembering(CallOptions::default().max_total_timeout(ms(1_000)));
    let call = calling(&client, options);
    let asked = peer.call().await;
    for value in 1..=20_000 {
        peer.progress(&asked.token, f64::from(value)).await;
    }
    let timed_out = timed_out(call.await.unwrap());
    assert_eq!(timed_out.notes, 20_000);
    let told = told.lock().unwrap();
    assert_eq!(
        told.last().map(|progress| progress.value),
        Some(20_000.0),
        "the latest is reported"
    );
}

/// An answer that is ready when the limit is reached is not discarded.
#[tokio::test(start_paused = true)]
async fn an_answer_at_the_deadline_is_returned() {
    let (client, mut peer) = greeted().await;
    let call = calling(&client, patient());
    let asked = peer.call().await;
    // Both happen at the same moment; the pipe is read first.
    peer.answer(&asked.id, result("just in time")).await;
    tokio::time::advance(ms(300)).await;
    assert_eq!(call.await.unwrap().unwrap().text, "just in time");
}

#[tokio::test(start_paused = true)]
async fn two_concurrent_calls_have_their_own_tokens_and_answers() {
    let (client, mut peer) = greeted().await;
    let calls: Vec<_> = (0..8).map(|_| calling(&client, patient())).collect();
    let mut asked = Vec::new();
    for _ in &calls {
        asked.push(peer.call().await);
    }
    let tokens: std::collections::BTreeSet<String> =
        asked.iter().map(|call| call.token.to_string()).collect();
    assert_eq!(tokens.len(), 8);
    for call in asked.iter().rev() {
        let text = Value::to_string(&call.id);
        peer.answer(&call.id, result(&text)).await;
    }
    let mut texts: Vec<String> = Vec::new();
    for call in calls {
        texts.push(call.await.unwrap().unwrap().text);
    }
    let mut expected: Vec<String> = asked.iter().map(|call| call.id.to_string()).collect();
    texts.sort();
    expected.sort();
    assert_eq!(texts, expected);
}
