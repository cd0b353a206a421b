//! The steps of a job that is repeated, and the decisions about its interrupted steps (K12).

use outlast_testkit::mcp_process::{McpProcess, Signal, signal};
use serde_json::Value;

use super::steps::{INTERRUPTED, as_strs, printed, run, shop};
use super::{Shop, ended, start};
use crate::support::Ran;

impl Shop {
    /// Runs a command with the configuration of the workflows.
    async fn run(&self, arguments: &[&str]) -> Ran {
        let config = self.config();
        let configured = ["--config", &config];
        let arguments: Vec<&str> = arguments.iter().chain(&configured).copied().collect();
        self.world.run(&arguments).await
    }

    /// Repeats a job with these options, and returns the id of the new one.
    async fn retry(&self, id: &str, options: &[&str]) -> (String, String) {
        let retried = self.run(&[&["jobs", "retry", id, "--json"], options].concat()).await;
        assert_eq!(retried.code, Some(0), "{retried:?}");
        let job: Value = serde_json::from_str(&retried.stdout).unwrap();
        (job["id"].as_str().unwrap_or_else(|| panic!("{job}")).to_owned(), retried.stderr)
    }

    /// Decides about a step.
    async fn resolve(&self, id: &str, name: &str, decision: &str) -> (Option<i32>, String) {
        let ran = self.world.run(&["step", "resolve", id, name, decision]).await;
        (ran.code, ran.stderr)
    }

    /// Runs the script whose step `slow` is interrupted by a kill -9 of the server. Returns the failed job.
    async fn interrupt(&self) -> (McpProcess, String) {
        let mut server = self.serve().await;
        let id = start(&mut server, "script", "").await;
        self.pid("pid").await;
        let (code, why) = self.resolve(&id, "slow", "--done").await;
        assert!(code == Some(1) && why.contains("is running"), "{code:?} {why}");
        server.kill().await;
        self.go();
        let mut server = self.serve().await;
        let got = ended(&mut server, &id).await;
        assert_eq!(got["status"], "failed", "{got}");
        (server, id)
    }
}

/// K12: `jobs retry` takes over the finished steps in its insert, and the job that had them has none any more.
#[tokio::test]
async fn k12_a_retry_takes_over_the_finished_steps() {
    let script = r#"
outlast step one -- sh -c 'echo one >> ran; echo first'
outlast step two -- sh -c 'echo two >> ran; [ -e go ] && echo second'
"#;
    let shop = shop(script, "").await;
    let mut server = shop.serve().await;
    let (id, got) = run(&mut server).await;
    assert_eq!(got["status"], "failed", "{got}");
    shop.go();
    let (again, text) = shop.retry(&id, &[]).await;
    assert!(text.contains("it keeps 1 finished step"), "{text}");
    let got = ended(&mut server, &again).await;
    assert_eq!(printed(&got), "first\nsecond\n", "{got}");
    assert_eq!(shop.text("ran"), "one\ntwo\ntwo\n");
    assert_eq!(as_strs(&shop.steps(&id).await), []);
    let steps = [("one", "done"), ("two", "failed"), ("two", "done")];
    assert_eq!(as_strs(&shop.steps(&again).await), steps);
    let (same, _) = shop.retry(&id, &[]).await;
    assert_eq!(same, again, "a job is retried once");
}

/// K12: an interrupted step goes on as it was decided, and is refused until then.
#[tokio::test]
async fn k12_an_interrupted_step_goes_on_as_it_was_decided() {
    for decision in ["--done", "--rerun"] {
        let shop = shop(&INTERRUPTED.replace("OPTIONS", ""), "").await;
        let (mut server, id) = shop.interrupt().await;
        let (undecided, text) = shop.retry(&id, &[]).await;
        assert!(text.contains("the step `slow` was interrupted"), "{text}");
        assert_eq!(ended(&mut server, &undecided).await["status"], "failed");
        assert_eq!(as_strs(&shop.steps(&undecided).await)[1], ("slow", "interrupted"));

        let (code, text) = shop.resolve(&undecided, "slow", decision).await;
        assert_eq!(code, Some(0), "{text}");
        let states = match decision {
            "--done" => ["done", "Its output is empty"],
            _ => ["to rerun", "runs again in its next run"],
        };
        assert!(text.contains(states[1]) && text.contains("outlast jobs retry"), "{text}");
        assert_eq!(as_strs(&shop.steps(&undecided).await)[1], ("slow", states[0]));
        let (decided, _) = shop.retry(&undecided, &[]).await;
        let got = ended(&mut server, &decided).await;
        let (output, ran) = match decision {
            "--done" => ("all\n", "first\nslow\n"),
            _ => ("end\nall\n", "first\nslow\nslow\n"),
        };
        assert_eq!((printed(&got), &*shop.text("ran")), (output, ran), "{got}");
        assert_eq!(as_strs(&shop.steps(&decided).await), [("first", "done"), ("slow", "done")]);
    }
}

/// K12: `jobs retry --again` is the consent for every interrupted step.
#[tokio::test]
async fn k12_a_retry_with_consent_runs_interrupted_steps_again() {
    let shop = shop(&INTERRUPTED.replace("OPTIONS", ""), "").await;
    let (mut server, id) = shop.interrupt().await;
    let (again, text) = shop.retry(&id, &["--again"]).await;
    assert!(!text.contains("interrupted"), "{text}");
    let got = ended(&mut server, &again).await;
    assert_eq!(printed(&got), "end\nall\n", "{got}");
    assert_eq!(shop.text("ran"), "first\nslow\nslow\n");
}

/// M4: a question is not a step that can be declared done: its script would take nothing for the answer. A retry asks it
/// again.
#[tokio::test]
async fn m4_a_question_is_not_resolved_without_an_answer() {
    let shop = shop("outlast ask 'Deploy?' --choices yes,no", "").await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "script", "").await;
    let asked = shop.asks(&id).await;
    let (name, _) = shop.steps(&id).await.remove(0);
    let is_refused = async |hint: &str| {
        let (code, why) = shop.resolve(&id, &name, "--done").await;
        let expected = why.contains("it needs an answer") && why.contains(hint);
        assert!(code == Some(1) && expected, "{code:?} {why}");
    };
    is_refused("outlast jobs answer").await;
    assert_eq!(shop.run(&["jobs", "cancel", &id]).await.code, Some(0));
    is_refused("outlast jobs retry").await;
    let (again, _) = shop.retry(&id, &[]).await;
    assert_eq!(shop.asks(&again).await["text"], asked["text"]);
    assert_eq!(shop.answer(&again, "no").await.code, Some(0));
    assert_eq!(printed(&ended(&mut server, &again).await), "no\n");
}

/// M4: an answer counts for the next run too if its command was killed before the worker knew of the answer.
#[tokio::test]
async fn m4_an_answer_counts_although_the_command_was_killed() {
    let shop =
        shop("echo $$ > pid\nanswer=$(outlast ask 'Which?')\necho \"was $answer\"", "").await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "script", "").await;
    shop.asks(&id).await;
    // The worker learns of both at once.
    server.signal(Signal::STOP);
    let answered = shop.answer(&id, "this one").await;
    signal(shop.pid("pid").await, Signal::KILL);
    server.signal(Signal::CONT);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let got = ended(&mut server, &id).await;
    assert_eq!(got["status"], "failed", "{got}");
    let (again, _) = shop.retry(&id, &[]).await;
    let got = ended(&mut server, &again).await;
    assert_eq!(printed(&got), "was this one\n", "{got}");
}

/// K12: only an interrupted step of the caller's job is resolved.
#[tokio::test]
async fn k12_a_step_that_is_not_interrupted_is_not_resolved() {
    let mut shop = shop(&INTERRUPTED.replace("OPTIONS", ""), "").await;
    let (_server, id) = shop.interrupt().await;
    let cases = [
        (&*id, "first", "the step `first` of job"),
        (&id, "other", "has no step `other`"),
        ("00000000000000000000000000000000", "slow", "there is no job"),
    ];
    for (job, name, expected) in cases {
        let (code, why) = shop.resolve(job, name, "--done").await;
        assert!(code == Some(1) && why.contains(expected), "{code:?} {why}");
    }
    for options in [&["--done", "--rerun"][..], &[]] {
        let ran = shop.world.run(&[&["step", "resolve", &*id, "slow"], options].concat()).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
    shop.world.set("OUTLAST_OWNER", "stranger");
    let (code, why) = shop.resolve(&id, "slow", "--done").await;
    assert!(code == Some(1) && why.contains("there is no job"), "{code:?} {why}");
}
