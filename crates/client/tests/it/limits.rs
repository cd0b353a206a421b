//! D1 to D8: the two limits and the effect of progress on them, under paused time.

use outlast_client::{CallOptions, ClientError, Limit};
use outlast_testkit::peer::result;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{calling, greeted, ms, remembering, timed_out};

#[tokio::test(start_paused = true)]
async fn d1_by_default_a_call_waits_forever() {
    let (client, mut peer) = greeted().await;
    let call = calling(&client, CallOptions::default());
    let asked = peer.call().await;
    sleep(ms(100 * 3_600_000)).await;
    peer.answer(&asked.id, result("at last")).await;
    assert_eq!(call.await.unwrap().unwrap().text, "at last");
}

#[tokio::test(start_paused = true)]
async fn d1_a_limit_of_zero_is_a_usage_error_and_nothing_is_sent() {
    let (client, mut peer) = greeted().await;
    let zero = ms(0);
    for options in
        [CallOptions::default().timeout(zero), CallOptions::default().max_total_timeout(zero)]
    {
        let called = client.call_tool("slow", json!({}), options.clone()).await;
        assert!(matches!(called, Err(ClientError::Usage(_))), "{called:?}");
        let asked = client.request("tools/list", Value::Null, options).await;
        assert!(matches!(asked, Err(ClientError::Usage(_))), "{asked:?}");
    }
    let call = calling(&client, CallOptions::default());
    assert_eq!(peer.call().await.params["name"], "slow");
    call.abort();
}

/// D1: any other request has the same limits.
#[tokio::test(start_paused = true)]
async fn d1_any_request_takes_the_same_limits() {
    let (client, mut peer) = greeted().await;
    let began = Instant::now();
    let options = CallOptions::default().timeout(ms(300)).reset_timeout_on_progress();
    let asking = client.request("tools/list", Value::Null, options.clone());
    let serving = async {
        let asked = peer.hear().await;
        assert_eq!(asked["method"], "tools/list");
        sleep(ms(200)).await;
        peer.progress(&asked["params"]["_meta"]["progressToken"], 1.0).await;
    };
    let (asked, ()) = tokio::join!(asking, serving);
    assert!(matches!(asked, Err(ClientError::TimedOut(_))), "{asked:?}");
    assert_eq!(began.elapsed().as_millis(), 500);

    let asking = client.request("vendor/own", json!({ "a": 1 }), options);
    let serving = async {
        let cancelled = peer.hear().await;
        assert_eq!(cancelled["method"], "notifications/cancelled");
        let asked = peer.hear().await;
        assert_eq!((&asked["method"], &asked["params"]["a"]), (&json!("vendor/own"), &json!(1)));
        peer.answer(&asked["id"], json!({ "own": [1, 2] })).await;
    };
    let (asked, ()) = tokio::join!(asking, serving);
    assert_eq!(asked.unwrap(), json!({ "own": [1, 2] }));
}

#[tokio::test(start_paused = true)]
async fn d2_without_progress_the_timeout_fires() {
    let (client, mut peer) = greeted().await;
    let began = Instant::now();
    let options = CallOptions::default().timeout(ms(300)).reset_timeout_on_progress();
    let call = calling(&client, options);
    peer.call().await;
    let timed_out = timed_out(call.await.unwrap());
    assert_eq!((timed_out.limit, timed_out.length), (Limit::Idle, ms(300)));
    assert_eq!(began.elapsed().as_millis(), 300);
}

#[tokio::test(start_paused = true)]
async fn d3_progress_resets_the_timeout_and_a_later_answer_arrives() {
    let (client, mut peer) = greeted().await;
    let options = CallOptions::default().timeout(ms(300)).reset_timeout_on_progress();
    let (options, told) = remembering(options);
    let call = calling(&client, options);
    let asked = peer.call().await;
    sleep(ms(250)).await;
    peer.progress(&asked.token, 1.0).await;
    sleep(ms(250)).await;
    peer.answer(&asked.id, result("in time")).await;
    assert_eq!(call.await.unwrap().unwrap().text, "in time");
    assert_eq!(told.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn d4_when_progress_stops_the_timeout_fires() {
    let (client, mut peer) = greeted().await;
    let began = Instant::now();
    let options = CallOptions::default().timeout(ms(300)).reset_timeout_on_progress();
    let call = calling(&client, options);
    let asked = peer.call().await;
    for value in 1..=2 {
        sleep(ms(200)).await;
        peer.progress(&asked.token, f64::from(value)).await;
    }
    let timed_out = timed_out(call.await.unwrap());
    assert_eq!((timed_out.limit, timed_out.length), (Limit::Idle, ms(300)));
    assert_eq!(began.elapsed().as_millis(), 700);
}

#[tokio::test(start_paused = true)]
async fn d5_many_resets_keep_a_call_alive() {
    let (client, mut peer) = greeted().await;
    let options = CallOptions::default().timeout(ms(60_000)).reset_timeout_on_progress();
    let (options, told) = remembering(options);
    let call = calling(&client, options);
    let asked = peer.call().await;
    for value in 1..=120 {
        sleep(ms(30_000)).await;
        peer.progress(&asked.token, f64::from(value)).await;
    }
    peer.answer(&asked.id, result("an hour later")).await;
    assert_eq!(call.await.unwrap().unwrap().text, "an hour later");
    let values: Vec<f64> = told.lock().unwrap().iter().map(|told| told.value).collect();
    assert_eq!(values, (1..=120).map(f64::from).collect::<Vec<_>>(), "all of it, in order");
}

#[tokio::test(start_paused = true)]
async fn d6_with_the_flag_off_progress_resets_nothing() {
    let (client, mut peer) = greeted().await;
    let began = Instant::now();
    let (options, told) = remembering(CallOptions::default().timeout(ms(300)));
    let call = calling(&client, options);
    let asked = peer.call().await;
    for value in 1..=2 {
        sleep(ms(100)).await;
        peer.progress(&asked.token, f64::from(value)).await;
    }
    let timed_out = timed_out(call.await.unwrap());
    assert_eq!((timed_out.limit, timed_out.notes), (Limit::Idle, 2));
    assert_eq!(began.elapsed().as_millis(), 300);
    assert_eq!(told.lock().unwrap().len(), 2, "it is reported nevertheless");
}

/// D7: with progress, with a silent server, with the flag off; and at the exact time.
#[tokio::test(start_paused = true)]
async fn d7_the_total_timeout_ignores_progress() {
    let idle = CallOptions::default().timeout(ms(300));
    let cases = [
        ("progress keeps coming", idle.clone().reset_timeout_on_progress(), 100, 1_000),
        ("a silent server", idle.clone().reset_timeout_on_progress(), u64::MAX, 200),
        ("the flag is off", idle, 100, 200),
        ("alone", CallOptions::default(), 100, 1_000),
    ];
    for (what, options, every, total) in cases {
        let (client, mut peer) = greeted().await;
        let began = Instant::now();
        let call = calling(&client, options.max_total_timeout(ms(total)));
        let asked = peer.call().await;
        if every < u64::MAX {
            for value in 1.. {
                sleep(ms(every)).await;
                if call.is_finished() {
                    break;
                }
                peer.progress(&asked.token, f64::from(value)).await;
            }
        }
        let timed_out = timed_out(call.await.unwrap());
        assert_eq!((timed_out.limit, timed_out.length), (Limit::Total, ms(total)), "{what}");
        assert_eq!(timed_out.elapsed.as_millis(), u128::from(total), "{what}");
        assert!(began.elapsed() < ms(total + every.min(1) + 101), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn d7_if_both_limits_are_reached_together_the_total_is_reported() {
    let (client, mut peer) = greeted().await;
    let call = calling(&client, CallOptions::default().timeout(ms(300)).max_total_timeout(ms(300)));
    peer.call().await;
    assert_eq!(timed_out(call.await.unwrap()).limit, Limit::Total);
}

#[tokio::test(start_paused = true)]
async fn d8_without_a_callback_a_token_is_sent_and_progress_counts() {
    let (client, mut peer) = greeted().await;
    let options = CallOptions::default().timeout(ms(300)).reset_timeout_on_progress();
    let call = calling(&client, options);
    let asked = peer.call().await;
    assert!(asked.token.is_number(), "{asked:?}");
    for value in 1..=3 {
        sleep(ms(200)).await;
        peer.progress(&asked.token, f64::from(value)).await;
    }
    peer.answer(&asked.id, result("in time")).await;
    assert_eq!(call.await.unwrap().unwrap().text, "in time");
}

/// D12: the fields of the error, not only its message.
#[tokio::test(start_paused = true)]
async fn d12_the_error_counts_the_progress_and_its_age() {
    let (client, mut peer) = greeted().await;
    let call = calling(&client, CallOptions::default().max_total_timeout(ms(1_000)));
    let asked = peer.call().await;
    for value in 1..=3 {
        sleep(ms(200)).await;
        peer.progress(&asked.token, f64::from(value)).await;
    }
    let timed_out = timed_out(call.await.unwrap());
    assert_eq!(timed_out.notes, 3);
    assert_eq!(timed_out.last_note.map(|ago| ago.as_millis()), Some(400));
    assert_eq!(timed_out.elapsed.as_millis(), 1_000);
    assert!(timed_out.told);
}

/// The checklist of timeouts, H.
#[tokio::test(start_paused = true)]
async fn a_timeout_beyond_32_bits_of_milliseconds_is_not_short() {
    let (client, mut peer) = greeted().await;
    let call = calling(&client, CallOptions::default().timeout(ms(1 << 32)));
    let asked = peer.call().await;
    sleep(ms(1 << 31)).await;
    peer.answer(&asked.id, result("after 25 days")).await;
    assert_eq!(call.await.unwrap().unwrap().text, "after 25 days");
}
