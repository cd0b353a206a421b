//! People who close their terminal, and callers whose time limit ends: the paid job continues.

use std::time::Duration;

use outlast_testkit::mcp_process::{Signal, signal};

use crate::target::{DEEP, Target, research};
use crate::web::{ANN, Web};
use crate::{Setting, Verdict};

/// Closes a terminal in the middle of `outlast research`.
pub(crate) async fn terminal(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let mut command =
        target.command(&["research", "Why is the sky blue? [[sim:ok;words=60;hold]]"]);
    let mut child = command.spawn().unwrap();
    target.submitted(1).await;
    // The run is recorded a moment after it was paid for.
    tokio::time::sleep(Duration::from_millis(500)).await;
    signal(child.id().unwrap(), Signal::HUP);
    child.wait().await.unwrap();
    target.simulator.release();
    target.all_become("succeeded").await?;
    target.paid(1)
}

/// Runs `outlast call` on our own server, whose silence exceeds the idle limit.
pub(crate) async fn call(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    let web = Web::serve(&mut target, &[], None).await;
    target.set("ATTACK_TOKEN", ANN);
    let url = format!("http://{}/mcp", web.address);
    let arguments = research("ok;words=60;hold").to_string();
    let (code, _, said) = target
        .run(&[
            "call",
            "--url",
            &url,
            "--bearer-env",
            "ATTACK_TOKEN",
            "--tool",
            DEEP,
            "--args",
            &arguments,
            "--timeout",
            "2s",
        ])
        .await;
    if code != Some(3) {
        return Err(format!("`outlast call` exits with {code:?} in place of 3: {said}"));
    }
    target.simulator.release();
    target.all_become("succeeded").await?;
    target.paid(1)
}
