//! Questions of commands (M4): `outlast ask` and `outlast jobs answer`, whatever is killed.

use serde_json::{Value, json};

use super::steps::{printed, shop};
use super::{Shop, ended, start};
use crate::support::{Ran, eventually};

/// Asks, and waits before it ends.
const DEPLOY: &str = r#"
answer=$(outlast ask 'Deploy?' --choices yes,no)
echo "$answer" >> answers
while [ ! -e go ]; do sleep 0.01; done
echo "was $answer"
"#;

impl Shop {
    pub(super) async fn answer(&self, id: &str, text: &str) -> Ran {
        self.world.run(&["jobs", "answer", id, text]).await
    }

    /// Waits until the job asks, and returns the question.
    pub(super) async fn asks(&self, id: &str) -> Value {
        for _ in 0..600 {
            let shown = self.world.shown(id).await;
            if shown["state"] == "waiting" {
                return shown["asks"].clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("the job asks nothing: {}", self.world.shown(id).await)
    }
}

/// M4: kill -9 before and after the answer: the question stays, and is answered once.
#[tokio::test]
async fn m4_a_question_of_a_command_survives_kills_and_is_answered_once() {
    let shop = shop(DEPLOY, "").await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "script", "").await;
    let asked = shop.asks(&id).await;
    assert_eq!((&asked["text"], &asked["choices"]), (&json!("Deploy?"), &json!(["yes", "no"])));
    server.kill().await;
    let mut server = shop.serve().await;
    let again = shop.asks(&id).await;
    assert_eq!(again, asked, "it is the same question, with its deadline");
    let got = server.structured("get_job", json!({ "job_id": id, "wait_seconds": 0 })).await;
    assert_eq!((&got["status"], &got["question"]), (&json!("running"), &asked), "{got}");
    let listed = shop.world.run(&["jobs", "list", "--state", "waiting"]).await;
    assert!(listed.stdout.contains(&id[..8]), "{listed:?}");
    let wrong = shop.answer(&id, "perhaps").await;
    assert!(wrong.code == Some(1) && wrong.stderr.contains("one of: yes, no"), "{wrong:?}");
    let first = shop.answer(&id, "YES").await;
    assert_eq!((first.code, first.stdout.trim()), (Some(0), id.as_str()), "{first:?}");
    let second = shop.answer(&id, "no").await;
    assert_eq!(second.code, Some(1), "{second:?}");
    let answers = || std::fs::read_to_string(shop.file("answers")).unwrap_or_default();
    eventually("the command has its answer", || answers() == "yes\n").await;
    server.kill().await;
    shop.go();
    let mut server = shop.serve().await;
    let got = ended(&mut server, &id).await;
    assert_eq!(printed(&got), "was yes\n", "{got}");
    assert_eq!(answers(), "yes\nyes\n", "the second run found the recorded answer");
}

/// M4: after the deadline the default is the answer, and without one the job fails.
#[tokio::test]
async fn m4_a_question_without_an_answer_uses_its_default_or_fails() {
    let shop = shop(
        "outlast ask 'Which?' --default 1.2 --timeout 300ms\noutlast ask 'Who?' --timeout 300ms",
        "",
    )
    .await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "script", "").await;
    let got = ended(&mut server, &id).await;
    assert_eq!(got["error"]["code"], "NOT_ANSWERED", "{got}");
    assert_eq!(got["error"]["retryable"], true, "{got}");
    let steps = shop.world.run(&["step", "list", &id, "--json"]).await;
    let steps: Value = serde_json::from_str(&steps.stdout).unwrap();
    let states: Vec<_> = steps["steps"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["done", "failed"], "{steps}");
}

/// M4: two questions of one command are asked one after the other.
#[tokio::test]
async fn m4_two_questions_are_asked_one_after_the_other() {
    let script = "outlast ask One? > one & outlast ask Two? > two & wait; cat one two";
    let shop = shop(script, "").await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "script", "").await;
    for _ in 0..2 {
        let asked = shop.asks(&id).await;
        let text = asked["text"].as_str().unwrap().to_lowercase();
        assert_eq!(shop.answer(&id, &text).await.code, Some(0));
    }
    let got = ended(&mut server, &id).await;
    assert_eq!(printed(&got), "one?\ntwo?\n", "{got}");
}

/// M4: `outlast ask` works inside of a workflow command alone, and refuses what cannot be asked.
#[tokio::test]
async fn m4_a_question_outside_of_a_command_is_refused() {
    let shop = Shop::new().await;
    let outside = shop.world.run(&["ask", "Deploy?"]).await;
    assert!(outside.code == Some(2) && outside.stderr.contains("steps = true"), "{outside:?}");
    let nobody = shop.world.run(&["jobs", "answer", "0f8fad5b", "yes"]).await;
    assert_ne!(nobody.code, Some(0), "{nobody:?}");
}
