//! B9, B10, C6: failures of queued research.

use super::*;

/// B9, C6: a temporary refusal is retried; failures are counted and kept.
#[tokio::test]
async fn b9_a_failure_that_passes_is_counted_and_survived() {
    let (world, mut client) = queueing().await;
    let id = client.queue(&format!("http;status=503;times=1|{QUICK}")).await;
    let shape = client.ended(&id).await.shape;
    assert_eq!((&shape["status"], &shape["attempts"]), (&json!("completed"), &json!(1)));
    let history = shape["errorHistory"].as_array().unwrap();
    assert_eq!(history.len(), 1);
    assert_eq!(history[0]["code"], "SERVICE_UNAVAILABLE");
    assert!(history[0]["message"].is_string() && history[0]["timestamp"].is_string());
    assert_eq!(world.submits(), 1);
}

/// B9, C6: N retries are N + 1 attempts, then the job has failed for good.
#[tokio::test]
async fn b9_retries_end() {
    for (retries, tries) in [("2", 3), ("0", 1)] {
        let (world, mut client) = queueing_with(&[("PERPLEXITY_MAX_JOB_RETRIES", retries)]).await;
        let id = client.queue("http;status=503").await;
        let history = client.ended(&id).await;
        let shape = &history.shape;
        assert_eq!((&shape["status"], &shape["attempts"]), (&json!("failed"), &json!(tries)));
        assert_eq!(shape["errorHistory"].as_array().unwrap().len(), tries);
        assert_eq!(shape["error"]["code"], "SERVICE_UNAVAILABLE");
        assert_eq!(submitted(&world).len(), tries);
        let word = if tries == 1 { "attempt" } else { "attempts" };
        assert!(
            history.text.contains(&format!("Failed** after {tries} {word}")),
            "{}",
            history.text
        );
        assert!(shape.get("progress").is_none(), "{shape}");
    }
}

/// Defect B5 of the older server: a permanent error is not retried, and 401 names the key's setting.
#[tokio::test]
async fn b9_permanent_errors_are_not_retried() {
    let (world, mut client) = queueing().await;
    for status in [400, 401, 402, 403, 404, 405, 410, 413, 422] {
        let before = submitted(&world).len();
        let id = client.queue(&format!("http;status={status}")).await;
        let shape = client.ended(&id).await.shape;
        assert_eq!(
            (&shape["status"], &shape["attempts"]),
            (&json!("failed"), &json!(1)),
            "{status}"
        );
        assert_eq!(submitted(&world).len(), before + 1, "{status}");
        if status == 401 {
            assert_eq!(shape["error"]["code"], "UNAUTHORIZED");
            assert!(shape["error"]["message"].as_str().unwrap().contains("PERPLEXITY_API_KEY"));
        }
    }
}

/// B10: while it waits for its next attempt it is pending, never failed, and its text states this.
#[tokio::test]
async fn b10_a_retrying_job_says_its_attempt_and_earlier_errors() {
    let (_world, mut client) = queueing_with(&[("PERPLEXITY_RETRY_BASE_MS", "600000")]).await;
    let id = client.queue(&format!("http;status=503;times=1|{QUICK}")).await;
    let history = client.until(&id, |history| history["attempts"] == 1).await;
    assert_eq!(history.shape["status"], "pending");
    assert!(history.shape.get("error").is_none(), "it has not failed: {}", history.shape);
    for text in [&history.text, history.shape["statusMessage"].as_str().unwrap()] {
        assert!(text.contains("Retry Attempt: 2\n"), "{text}");
        assert!(text.contains("1. [SERVICE_UNAVAILABLE] "), "{text}");
        assert!(text.contains("next try at 2"), "says when: {text}");
    }
    assert_eq!(history.shape["progress"]["attempt"], 2);
}

/// tools.md: a job that waits for a rate limit states this.
#[tokio::test]
async fn a_rate_limited_question_says_until_when_it_waits() {
    let (_world, mut client) = queueing().await;
    let id = client.queue(&format!("http;status=429;times=1;retry_after=600|{QUICK}")).await;
    let history = client.until(&id, |history| history["attempts"] == 1).await;
    assert!(history.text.contains("limits the rate of requests, until 2"), "{}", history.text);
}

/// C7, B9a: a timed-out attempt of queued research resumes the same run.
#[tokio::test]
async fn c7_a_timed_out_attempt_resumes_the_run() {
    let (world, mut client) = queueing_with(&[("PERPLEXITY_POLLING_TIMEOUT_MS", "300")]).await;
    let id = client.queue("ok;words=60;hold=true").await;
    let again = client.until(&id, |history| history["attempts"] == 1).await;
    assert_eq!(again.shape["errorHistory"][0]["code"], "TIMEOUT");
    release(&world, 1).await;
    assert_eq!(client.ended(&id).await.shape["status"], "completed");
    assert_eq!(world.submits(), 1);
}

/// B9a: a model that reads of the failure learns that the run may still finish, before it asks again.
#[tokio::test]
async fn b9a_a_history_names_a_run_that_outlived_its_job() {
    let limits = [("PERPLEXITY_POLLING_TIMEOUT_MS", "300"), ("PERPLEXITY_MAX_JOB_RETRIES", "0")];
    let (_world, mut client) = queueing_with(&limits).await;
    let id = client.queue("stuck").await;
    let ended = client.ended(&id).await;
    let message = ended.shape["error"]["message"].as_str().unwrap();
    assert!(message.contains("the provider's run may still finish"), "{message}");
    assert!(ended.text.contains(message), "{}", ended.text);
}
