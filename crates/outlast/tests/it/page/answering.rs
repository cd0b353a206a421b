//! The question of a job on its page (M4).

use serde_json::json;

use super::browser::Browser;
use crate::http::client::{ANN, BOB, Served};
use crate::support::{World, binary};

/// M4: the page shows the question of a job, and its owner alone answers it, once and with a choice.
#[tokio::test]
async fn m4_the_page_answers_the_question_of_a_job() {
    let mut world = World::new().await;
    let folder = world.data_dir().parent().unwrap().join("shop");
    std::fs::create_dir_all(&folder).unwrap();
    let config = folder.join("outlast.toml");
    let program = binary().parent().unwrap().display();
    let workflow = format!(
        "[[workflow]]\nname = \"script\"\nsteps = true\n\
         command = [\"/bin/sh\", \"-c\", \"outlast ask 'Deploy <b>?' --choices yes,no --default no\"]\n\
         env = {{ PATH = \"{program}:/usr/local/bin:/usr/bin:/bin\" }}\n"
    );
    std::fs::write(&config, workflow).unwrap();
    let flags = ["--config", config.to_str().unwrap(), "--tools", "jobs"];
    let served = Served::start(&mut world, &flags).await;
    let started = served.client(ANN).call("start_job", json!({ "workflow": "script" })).await;
    let id = started["job_id"].as_str().unwrap();
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
