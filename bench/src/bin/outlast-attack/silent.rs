//! Clients that give up silently, or die with an unread answer, and ask again: one question is paid for once.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::target::{DEEP, Target, ask, research};
use crate::web::Web;
use crate::{Setting, Verdict};

/// Longer than any pause in which an answer may still be withdrawn.
const LATER: Duration = Duration::from_secs(3);
const REPORT: &str = "ok;words=60;delay_ms=2000";

/// Makes the call three times as a client whose limit is shorter than the research and which sends no cancellation.
pub(crate) async fn stdio(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let mut server = target.serve(&[]).await;
    for _ in 0..3 {
        ask(&mut server, DEEP, &research(REPORT)).await;
        target.completed(1).await;
        tokio::time::sleep(LATER).await;
    }
    target.paid(1)
}

/// Lets a client leave with the answer unread in its pipe; the next client asks the same question.
pub(crate) async fn death(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    for _ in 0..2 {
        let mut server = target.serve(&[]).await;
        ask(&mut server, DEEP, &research(REPORT)).await;
        target.completed(1).await;
        tokio::time::sleep(LATER).await;
        server.close_input();
        server.ended().await;
    }
    target.paid(1)
}

/// Resets an HTTP connection with an unread answer, and asks again.
pub(crate) async fn http_reset(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    let web = Web::serve(&mut target, &[], None).await;
    for _ in 0..2 {
        let mut stream = web.connect().await;
        let request = web.tool_call(crate::web::ANN, DEEP, &research(REPORT), json!({}));
        stream.write_all(&request).await.unwrap();
        target.completed(1).await;
        tokio::time::sleep(LATER).await;
        // Closing a socket with unread bytes resets it.
        drop(stream);
    }
    target.paid(1)
}

/// Gives up properly after a moment and asks again, three times, in the mode `auto` that `init` writes.
pub(crate) async fn auto(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    target.set("PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH", "auto");
    let mut server = target.serve(&[]).await;
    for _ in 0..3 {
        let call = ask(&mut server, DEEP, &research("ok;words=60;hold")).await;
        target.submitted(1).await;
        // Long enough for the server to begin every call.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let cancelled = json!({ "requestId": call, "reason": "timed out" });
        server.notify("notifications/cancelled", cancelled).await;
    }
    target.simulator.release();
    target.all_become("succeeded").await?;
    target.paid(1)
}
