//! The question of a job on its page (M4).

use serde_json::json;

use super::browser::Browser;
use crate::http::client::{ANN, BOB, Served};
use crate::support::{World, binary};

/// Starts a server of Ann and Bob whose workflow `script` runs this line.
async fn serve(world: &mut World, script: &str) -> Served {
    let folder = world.data_dir().parent().unwrap().join("shop");
    std::fs::create_dir_all(&folder).unwrap();
    let config = folder.join("outlast.toml");
    let program = binary().parent().unwrap().display();
    let workflow = format!(
        "[[workflow]]\nname = \"script\"\nsteps = true\ncommand = [\"/bin/sh\", \"-c\", \"{script}\"]\n\
         env = {{ PATH = \"{program}:/usr/local/bin:/usr/bin:/bin\" }}\n"
    );
    std::fs::write(&config, workflow).unwrap();
    Served::start(world, &["--config", config.to_str().unwrap(), "--tools", "jobs"]).await
}

/// Starts a job of Ann, and returns its id.
async fn start(served: &Served) -> String {
    let started = served.client(ANN).call("start_job", json!({ "workflow": "script" })).await;
    started["job_id"].as_str().unwrap().to_owned()
}

/// M4: the page shows the question of a job, and its owner alone answers it, once and with a choice.
#[tokio::test]
async fn m4_the_page_answers_the_question_of_a_job() {
    let mut world = World::new().await;
    let script = "outlast ask 'Deploy <b>?' --choices yes,no --default no";
    let served = serve(&mut world, script).await;
    let id = start(&served).await;
    let path = format!("/ui/jobs/{id}");
    let browser = Browser::signed_in(served.address, ANN).await;
    let shown = browser.until(&path, "state waiting").await.body;
    for part in
        ["Deploy &lt;b&gt;?", "value=\"yes\"", "value=\"no\"", "name=\"question\" value=\"q1\""]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let answer = format!("{path}/answer");
    let fields = |text| [("question", "q1"), ("answer", text)];
    let foreign = Browser::signed_in(served.address, BOB).await;
    assert_eq!(foreign.post(&answer, &fields("yes")).await.status, 404);
    let wrong = browser.post(&answer, &fields("perhaps")).await;
    assert!(wrong.status == 409 && wrong.body.contains("one of: yes, no"), "{}", wrong.body);
    let first = browser.post(&answer, &fields("yes")).await;
    assert_eq!(first.location.as_deref(), Some(path.as_str()), "{}", first.body);
    assert_eq!(browser.post(&answer, &fields("no")).await.status, 409, "the first answer counts");
    let ended = browser.until(&path, "state succeeded").await.body;
    assert!(ended.contains("yes") && !ended.contains("waits for an answer"), "{ended}");
}

/// M4, E7: questions are counted for their owner and the operator: open, asked, answered, without an answer in time.
#[tokio::test]
async fn m4_questions_are_counted() {
    let mut world = World::new().await;
    world.set("OUTLAST_OWNER", "ann");
    let script = "outlast ask One? --default a --timeout 300ms && outlast ask Two?";
    let served = serve(&mut world, script).await;
    let id = start(&served).await;
    let path = format!("/ui/jobs/{id}");
    let browser = Browser::signed_in(served.address, ANN).await;
    while !browser.until(&path, "state waiting").await.body.contains("Two?") {}
    let figures =
        async |token| served.client(token).send("GET /metrics", &[], "").await.body().await;
    let counted = |event: &str, count: u32| {
        format!("outlast_questions_total{{workflow=\"script\",event=\"{event}\"}} {count}\n")
    };
    let open = figures(ANN).await;
    for line in [counted("asked", 2), counted("timed_out", 1), "questions_open 1\n".to_owned()] {
        assert!(open.contains(&line), "{line}: {open}");
    }
    assert!(!open.contains("event=\"answered\""), "{open}");
    browser.post(&format!("{path}/answer"), &[("question", "q2"), ("answer", "b")]).await;
    browser.until(&path, "state succeeded").await;
    let closed = figures(ANN).await;
    for line in [counted("asked", 2), counted("answered", 1), "questions_open 0\n".to_owned()] {
        assert!(closed.contains(&line), "{line}: {closed}");
    }
    let of_bob = figures(BOB).await;
    assert!(!of_bob.contains("outlast_questions_total{"), "{of_bob}");
}
