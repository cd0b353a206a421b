//! The actions of the page (I4).

use super::browser::Browser;
use crate::http::client::{ANN, BOB, Served};
use crate::support::World;

#[tokio::test]
async fn i4_what_costs_money_asks_first_and_one_form_asks_once() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let form = browser.get("/ui/ask").await.body;
    let key = form.split("name=\"key\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let mut fields = vec![("key", key), ("question", "How long is a lease?"), ("effort", "low")];
    let first = browser.post("/ui/ask", &fields).await;
    assert_eq!(first.status, 200);
    assert!(first.body.contains("Ask this?") && first.body.contains("usually $"), "{}", first.body);
    for part in ["How long is a lease?</div>", "<dt>Effort</dt><dd>low</dd>", "<dd>perplexity</dd>"]
    {
        assert!(first.body.contains(part), "{part}: {}", first.body);
    }
    assert_eq!(world.submits(), 0, "nothing was sent");
    fields.push(("confirmed", "yes"));
    let paths: Vec<String> =
        [browser.post("/ui/ask", &fields).await, browser.post("/ui/ask", &fields).await]
            .into_iter()
            .map(|shown| shown.location.unwrap_or_else(|| panic!("{}", shown.body)))
            .collect();
    assert_eq!(paths[0], paths[1], "sent twice, asked once");
    browser.until(&paths[0], "state succeeded").await;
    assert_eq!(world.submits(), 1);
    for (fields, why) in [
        (vec![("question", " ")], "The question is empty."),
        (vec![("question", "Why?"), ("budget", "much")], "no amount"),
        (vec![("question", "Why?"), ("provider", "openai")], "not configured"),
    ] {
        let refused = browser.post("/ui/ask", &fields).await;
        assert_eq!(refused.status, 400);
        assert!(refused.body.contains(why), "{why}: {}", refused.body);
    }
}

/// Returns the conversation of a job, after the job's end.
async fn conversation_of(browser: &Browser, job: &str) -> String {
    let shown = browser.until(job, "state succeeded").await.body;
    let field = shown.split("name=\"conversation\" value=\"").nth(1).unwrap();
    field.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn i4_follow_up_cancel_retry_and_delete() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let first = browser.ask("How long is a lease?").await;
    let conversation = conversation_of(&browser, &first).await;
    let fields = [
        ("conversation", conversation.as_str()),
        ("question", "And why? [[sim:ok;words=60;hold]]"),
        ("confirmed", "yes"),
    ];
    let second = browser.post("/ui/ask", &fields).await.location.unwrap();
    browser.until(&second, "state running").await;
    assert!(browser.get(&second).await.body.contains("How long is a lease?"), "its conversation");
    let busy = browser.post("/ui/ask", &fields).await;
    assert!(busy.body.contains("busy"), "{}", busy.body);
    let refused = browser.post(&format!("{first}/delete"), &[("confirmed", "yes")]).await;
    assert_eq!(refused.status, 409, "not while a question is under way");

    let asked = browser.post(&format!("{second}/cancel"), &[]).await;
    assert!(asked.body.contains("Cancel this job?"));
    let done = browser.post(&format!("{second}/cancel"), &[("confirmed", "yes")]).await;
    assert_eq!(done.location.as_deref(), Some(second.as_str()));
    let cancelled = browser.get(&second).await.body;
    assert!(cancelled.contains("state cancelled") && cancelled.contains("/retry"), "{cancelled}");

    let asked = browser.post(&format!("{second}/retry"), &[]).await;
    assert!(asked.body.contains("Retry this job?"), "{}", asked.body);
    let confirmed = [("confirmed", "yes"), ("word", "again")];
    let third = browser.post(&format!("{second}/retry"), &confirmed).await.location.unwrap();
    assert_ne!(third, second);
    let again = browser.post(&format!("{second}/retry"), &confirmed).await.location.unwrap();
    assert_eq!(again, third, "one retry is enough");
    browser.until(&third, "state running").await;
    browser.post(&format!("{third}/cancel"), &[("confirmed", "yes")]).await;

    let asked = browser.post(&format!("{first}/delete"), &[]).await;
    assert!(asked.body.contains("Delete this conversation?"));
    assert_eq!(browser.get(&first).await.status, 200, "not yet");
    // It waits until the run of the question that was just cancelled is stopped at the provider.
    let deleted = browser.post(&format!("{first}/delete"), &[("confirmed", "yes")]).await;
    assert_eq!(deleted.location.as_deref(), Some("/ui"), "{}", deleted.body);
    for path in [&first, &second, &third] {
        assert_eq!(browser.get(path).await.status, 404, "{path}");
    }
    assert!(browser.get("/ui/conversations").await.body.contains("No conversations yet."));
    assert!(!browser.get("/ui/spend").await.body.contains("Nothing yet."), "the ledger stays");
}

/// A question whose run could not be stopped stays, because the duty to stop it is in its job; the page reports it.
#[tokio::test]
async fn i4_a_run_that_is_still_to_be_stopped_keeps_its_question_alone() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let first = browser.ask("How long is a lease?").await;
    let conversation = conversation_of(&browser, &first).await;
    let fields = [
        ("conversation", conversation.as_str()),
        ("question", "And why? [[sim:http;on=cancel;status=503;times=100000|stuck]]"),
        ("confirmed", "yes"),
    ];
    let second = browser.post("/ui/ask", &fields).await.location.unwrap();
    browser.until(&second, "Remote run").await;
    browser.post(&format!("{second}/cancel"), &[("confirmed", "yes")]).await;
    let deleted = browser.post(&format!("{first}/delete"), &[("confirmed", "yes")]).await;
    assert_eq!(deleted.status, 409);
    assert!(deleted.body.contains("Not all is deleted"), "{}", deleted.body);
    assert!(deleted.body.contains("still to be stopped at"), "{}", deleted.body);
    assert_eq!(browser.get(&first).await.status, 404);
    let kept = browser.get(&second).await;
    assert!(kept.status == 200 && kept.body.contains("state cancelled"), "{}", kept.body);
}

/// A server whose tools queue nothing runs the requests of its page.
#[tokio::test]
async fn i8_a_question_of_the_page_runs_in_blocking_mode_too() {
    let mut world = World::new().await;
    world.set("OUTLAST_TOOLS", "research");
    world.set("PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH", "false");
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let job = browser.ask("How long is a lease?").await;
    browser.until(&job, "state succeeded").await;
}

/// After SUBMIT_UNKNOWN a retry names the risk and asks for consent (P6).
#[tokio::test]
async fn i4_a_retry_that_may_pay_twice_needs_the_word() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let job = browser.ask("Lost? [[sim:drop_submit]]").await;
    let failed = browser.until(&job, "state failed").await.body;
    assert!(failed.contains("SUBMIT_UNKNOWN"), "{failed}");
    assert!(failed.contains("<code>outlast jobs retry ") && !failed.contains('`'), "{failed}");
    let submits = world.submits();
    for fields in [vec![], vec![("confirmed", "yes")], vec![("confirmed", "yes"), ("word", "yes")]]
    {
        let asked = browser.post(&format!("{job}/retry"), &fields).await;
        assert_eq!(asked.status, 200, "{fields:?}");
        assert!(
            asked.body.contains("paid for a second time") && asked.body.contains("name=\"word\"")
        );
    }
    assert_eq!(world.submits(), submits, "nothing was sent");
    let retried =
        browser.post(&format!("{job}/retry"), &[("confirmed", "yes"), ("word", "again")]).await;
    assert_eq!(retried.status, 303, "{}", retried.body);
}

/// The jobs that do not fit an action are left out of it, with the reason.
#[tokio::test]
async fn i4_several_jobs_are_cancelled_retried_and_deleted_together() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let [running, other] = [
        browser.ask("Is it one? [[sim:ok;words=60;hold]]").await,
        browser.ask("Is it two? [[sim:ok;words=60;hold]]").await,
    ];
    let lost = browser.ask("Is it lost? [[sim:drop_submit]]").await;
    let failed = browser.ask("Did it fail? [[sim:fail]]").await;
    for (job, state) in
        [(&running, "running"), (&other, "running"), (&lost, "failed"), (&failed, "failed")]
    {
        browser.until(job, &format!("state {state}")).await;
    }
    let id = |job: &String| job.rsplit('/').next().unwrap().to_owned();
    let all = [&running, &other, &lost, &failed].map(id);
    let act = async |action: &str, jobs: &[String], confirmed: bool| {
        let mut fields = vec![("action", action)];
        fields.extend(jobs.iter().map(|job| ("job", job.as_str())));
        fields.extend(confirmed.then_some(("confirmed", "yes")));
        browser.post("/ui/several", &fields).await
    };

    let asked = act("retry", &all, false).await.body;
    for part in [
        "Retry these jobs?",
        "Retry 1 job: $",
        "Did it fail?",
        " together, usually.",
        "Left out: 2 jobs (nothing to retry",
        "Left out: 1 job (may be paid for twice, --again",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    assert!(!asked.contains("Is it lost?"), "{asked}");
    let submits = world.submits();
    assert_eq!(act("retry", &all, true).await.status, 303);
    browser.until("/ui?q=fail", "all <b>5</b>").await;
    assert!(world.submits() <= submits + 1, "only one was to be retried");

    let asked = act("cancel", &all, false).await.body;
    assert!(asked.contains("Left out: 2 jobs (ended already)."), "{asked}");
    assert_eq!(act("cancel", &all, true).await.status, 303);
    for job in [&running, &other] {
        assert!(browser.get(job).await.body.contains("state cancelled"));
    }
    let nothing = act("cancel", &all, true).await;
    assert!(nothing.status == 400 && nothing.body.contains("Nothing to do"), "{}", nothing.body);
    assert!(act("cancel", &[], false).await.body.contains("No job is selected."));
    assert_eq!(act("explode", &all, true).await.status, 404);

    // Another owner's jobs cannot be selected.
    let bob = Browser::signed_in(served.address, BOB).await;
    let fields = [("action", "delete"), ("job", all[2].as_str()), ("confirmed", "yes")];
    assert_eq!(bob.post("/ui/several", &fields).await.status, 400);
    // A conversation is deleted when all its questions have ended, the retried one among them.
    browser.until("/ui", "failed <b>3</b>").await;
    let asked = act("delete", &all, false).await.body;
    assert!(asked.contains("Delete these conversations?"), "{asked}");
    assert_eq!(act("delete", &all, true).await.status, 303);
    for job in [&running, &other, &lost, &failed] {
        assert_eq!(browser.get(job).await.status, 404, "{job}");
    }
}

#[tokio::test]
async fn i4_spend_is_shown_against_its_caps() {
    let mut world = World::new().await;
    world.set("OUTLAST_MAX_USD_PER_DAY", "9");
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let job = browser.ask("What does it cost?").await;
    browser.until(&job, "state succeeded").await;
    let spend = browser.get("/ui/spend").await.body;
    for part in
        ["of $9.00", "OUTLAST_MAX_USD_PER_DAY", "By day", "By provider", "<td>perplexity</td>"]
    {
        assert!(spend.contains(part), "{part}: {spend}");
    }
    assert!(browser.get("/ui").await.body.contains("of $9.00, this month $"));
}
