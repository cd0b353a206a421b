//! Lists: order, pages, filters.

use std::time::Duration;

use outlast_core::{
    Body, Checkpoint, Code, ConversationId, Cost, Failure, Insert, Job, JobId, JobPage, JobQuery,
    NewJob, Output, Profile, Progress, Prune, RequestNote, Scope, Settlement, StateKind, Summary,
    SummaryCharge, Visibility,
};
use serde_json::json;

use super::fixture::{
    Fixture, a_cost, a_failure, a_job, a_report, a_reservation, a_run, alice, an_insert, bob,
    succeed,
};
use crate::clock::START;

/// By arrival, not by last change.
pub async fn a_list_is_newest_first(fixture: Fixture) {
    let mut expected = Vec::new();
    for _ in 0..3 {
        expected.insert(0, fixture.add(a_job()).await.id);
    }
    fixture.claim().await;
    assert_eq!(ids(&list(&fixture, JobQuery { limit: 10, ..JobQuery::default() }).await), expected);
}

/// With any page size; a full last page is not followed by an empty one.
pub async fn pages_cover_everything_once(fixture: Fixture) {
    let mut expected = Vec::new();
    for _ in 0..6 {
        expected.insert(0, fixture.add(a_job()).await.id);
    }
    for (limit, pages) in [(1, 6), (2, 3), (4, 2), (6, 1), (7, 1)] {
        let (mut seen, mut count, mut after) = (Vec::new(), 0, None);
        loop {
            let page = list(&fixture, JobQuery { limit, after, ..JobQuery::default() }).await;
            seen.extend(ids(&page));
            count += 1;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!((&seen, count), (&expected, pages), "pages of {limit}");
    }
}

/// A cursor is a position, not a number of rows.
pub async fn pages_are_stable_while_jobs_arrive(fixture: Fixture) {
    let oldest = fixture.add(a_job()).await.id;
    fixture.add(a_job()).await;
    let page = list(&fixture, JobQuery { limit: 1, ..JobQuery::default() }).await;
    fixture.add(a_job()).await;
    let page = list(&fixture, JobQuery { limit: 1, after: page.next, ..JobQuery::default() }).await;
    assert_eq!((ids(&page), page.next), (vec![oldest], None));
}

/// One job in each state; any set of states can be requested.
pub async fn a_list_can_be_narrowed_to_states(fixture: Fixture) {
    let succeeded = fixture.add_succeeded().await.id;
    let claimed = fixture.add_claimed().await;
    let fail = Settlement::Fail { failure: a_failure("no"), raw: None };
    let failed = fixture.store.settle(&claimed.lease, fail).await.unwrap().id;
    let cancelled = fixture.add(a_job()).await.id;
    fixture.cancel(&cancelled).await;
    let running = fixture.add_claimed().await.job.id;
    let queued = fixture.add(a_job()).await.id;
    let table = [
        (vec![StateKind::Queued], vec![queued]),
        (vec![StateKind::Running], vec![running]),
        (vec![StateKind::Succeeded], vec![succeeded]),
        (vec![StateKind::Failed], vec![failed]),
        (vec![StateKind::Cancelled], vec![cancelled]),
        (vec![StateKind::Succeeded, StateKind::Queued], vec![queued, succeeded]),
        (StateKind::ALL.to_vec(), vec![queued, running, cancelled, failed, succeeded]),
        (vec![], vec![queued, running, cancelled, failed, succeeded]),
    ];
    for (states, expected) in table {
        let query = JobQuery { states: states.clone(), limit: 10, ..JobQuery::default() };
        let page = list(&fixture, query).await;
        assert_eq!(ids(&page), expected, "{states:?}");
    }
}

/// Beyond ASCII too.
pub async fn a_search_finds_titles_in_any_case(fixture: Fixture) {
    let job = titled(&fixture, "Über LEASES and fences").await;
    titled(&fixture, "something else").await;
    for text in ["leases", "LEASES AND", "über", "ÜBER l", "fences"] {
        assert_eq!(ids(&search(&fixture, text).await), [job.id], "{text}");
    }
    assert!(search(&fixture, "leases fences").await.jobs.is_empty());
    assert_eq!(search(&fixture, "").await.jobs.len(), 2);
}

/// No character is a pattern.
pub async fn a_search_treats_every_character_literally(fixture: Fixture) {
    let job = titled(&fixture, r"100% of a_b \ 'quoted' [x]*").await;
    titled(&fixture, "1000 of aXb").await;
    for text in ["0%", "a_b", r"\", "'", "[x]", "*"] {
        assert_eq!(ids(&search(&fixture, text).await), [job.id], "{text}");
    }
    for text in ["%", "_"] {
        assert_eq!(ids(&search(&fixture, text).await), [job.id], "{text}");
    }
}

/// It narrows like any other filter, and never across owners.
pub async fn an_id_prefix_finds_its_jobs(fixture: Fixture) {
    let mut jobs = Vec::new();
    for _ in 0..40 {
        jobs.push(fixture.add(a_job()).await.id);
    }
    let text = jobs[7].to_string();
    for length in [0, 1, 2, 8, 32] {
        let prefix = &text[..length];
        let mut expected: Vec<_> =
            jobs.iter().copied().filter(|id| id.to_string().starts_with(prefix)).collect();
        expected.reverse();
        assert_eq!(ids(&prefixed(&fixture, prefix).await), expected, "{prefix}");
    }
    for none in ["g", "A", "-", "%", "0f-", &format!("{text}0")] {
        assert!(prefixed(&fixture, none).await.jobs.is_empty(), "{none}");
    }
    let query = JobQuery { id_prefix: Some(text), limit: 10, ..JobQuery::default() };
    let stranger = Scope::Owner(super::fixture::bob());
    assert!(fixture.store.list(&stranger, &query).await.unwrap().jobs.is_empty());
}

/// All fields, in every state of a job.
pub async fn a_summary_contains_the_state_of_the_job(fixture: Fixture) {
    let conversation = Some(ConversationId::new("talk"));
    let mut new = NewJob { conversation, ..a_job() };
    new.request.set_note(RequestNote::SessionId, Some("tuesday".to_owned()));
    let job = fixture.add(new).await;
    assert_eq!(only(&fixture).await, expected(&job));
    let claimed = fixture.claim().await;
    let retry = Settlement::Retry {
        failure: a_failure("down"),
        wait: Duration::ZERO,
        checkpoint: Checkpoint::NotBegun,
    };
    let code = Some(a_failure("down").code);
    let retried = fixture.store.settle(&claimed.lease, retry).await.unwrap();
    assert_eq!(only(&fixture).await, Summary { failures: 1, code, ..expected(&retried) });
    fixture.clock.advance(Duration::from_secs(1));
    let claimed = fixture.claim().await;
    let progress = Progress { percent: Some(40), message: "reading".to_owned() };
    fixture.store.show_progress(&claimed.lease, &progress).await.unwrap();
    let running = fixture.read(&job.id).await;
    assert_eq!(running.progress, Some(progress));
    assert_eq!(only(&fixture).await, Summary { failures: 1, code, ..expected(&running) });
    let settled = fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    let ended_at = Some(START.after(Duration::from_secs(1)));
    assert_eq!(only(&fixture).await, Summary { failures: 1, code, ended_at, ..expected(&settled) });
}

/// A list by code has the jobs whose last failed attempt has it (I2).
pub async fn i2_a_list_can_be_of_one_failure_code(fixture: Fixture) {
    fixture.add(a_job()).await;
    let mut failed = Vec::new();
    for codes in [[Code::Timeout, Code::RateLimited], [Code::RateLimited, Code::Timeout]] {
        let job = fixture.add(NewJob { priority: 1, ..a_job() }).await;
        for (code, wait) in codes.into_iter().zip([Duration::ZERO, Duration::from_secs(60)]) {
            let claimed = fixture.claim().await;
            // A message may contain every character.
            let failure = Failure { code, ..a_failure("a \0 b") };
            let checkpoint = Checkpoint::NotBegun;
            let retry = Settlement::Retry { failure, wait, checkpoint };
            fixture.store.settle(&claimed.lease, retry).await.unwrap();
        }
        failed.push(job.id);
    }
    let of = async |code| {
        list(&fixture, JobQuery { code: Some(code), limit: 10, ..JobQuery::default() }).await
    };
    assert_eq!(ids(&of(Code::RateLimited).await), [failed[0]]);
    assert_eq!(ids(&of(Code::Timeout).await), [failed[1]]);
    assert!(of(Code::SubmitUnknown).await.jobs.is_empty());
}

/// Interfaces hide held calls of conversations, and use this field.
pub async fn a_summary_says_whether_the_id_was_promised(fixture: Fixture) {
    for visibility in [Visibility::Promised, Visibility::Unpromised] {
        fixture.add(NewJob { visibility, ..a_job() }).await;
    }
    let page = list(&fixture, JobQuery { limit: 10, ..JobQuery::default() }).await;
    let seen: Vec<_> = page.jobs.iter().map(|summary| summary.visibility).collect();
    assert_eq!(seen, [Visibility::Unpromised, Visibility::Promised]);
}

/// Neither an empty store nor a request for zero rows is an error.
pub async fn an_empty_page_is_not_an_error(fixture: Fixture) {
    let empty = JobPage { jobs: Vec::new(), next: None };
    assert_eq!(list(&fixture, JobQuery { limit: 10, ..JobQuery::default() }).await, empty);
    fixture.add(a_job()).await;
    assert_eq!(list(&fixture, JobQuery { limit: 0, ..JobQuery::default() }).await, empty);
}

/// Each search word is the start of a word in the question, or in the report once there is one.
pub async fn i2_words_of_questions_and_reports_find_their_jobs(fixture: Fixture) {
    let ask = json!({"messages": [
        {"role": "system", "content": "instructions"},
        {"role": "user", "content": "How do leases outlive their Wörker?"},
    ]});
    let asked = fixture
        .add(NewJob { title: "How do leases".to_owned(), request: ask.into(), ..a_job() })
        .await;
    let told = titled(&fixture, "Something else").await;
    for text in ["leases", "LEAS outl", "wörker", "lease how", "their, leases!"] {
        assert_eq!(ids(&worded(&fixture, text).await), [asked.id], "{text}");
    }
    for text in ["instructions", "eases", "ho", "leases fences", "else leases", "fences"] {
        assert!(worded(&fixture, text).await.jobs.is_empty(), "{text}");
    }
    assert_eq!(
        ids(&worded(&fixture, "?! * \" '").await),
        [told.id, asked.id],
        "without words there is no filter"
    );

    let claimed = fixture.claim().await;
    let body = Body::report("# Fences\n\nA fence is a number AND a promise[1].", Vec::new());
    let output = Output { body, ..a_report() };
    let succeed = Settlement::Succeed { output: output.into(), raw: None };
    fixture.store.settle(&claimed.lease, succeed).await.unwrap();
    for text in ["fences", "and", "leases fence number", "promise"] {
        assert_eq!(ids(&worded(&fixture, text).await), [claimed.job.id], "{text}");
    }
}

/// By the first word of its profile.
pub async fn i2_a_list_can_be_narrowed_to_a_provider(fixture: Fixture) {
    let profile = |name: &str| NewJob { profile: Profile::new(name), ..a_job() };
    let agent = fixture.add(profile("perplexity/agent https://api.example 0123")).await.id;
    let library = fixture.add(profile("library 0123")).await.id;
    let sonar = fixture.add(profile("perplexity/sonar https://api.example 0123")).await.id;
    for (provider, expected) in
        [("perplexity", vec![sonar, agent]), ("library", vec![library]), ("perplex", vec![])]
    {
        for scope in [Scope::Owner(alice()), Scope::Operator] {
            let provider = Some(provider.to_owned());
            let query = JobQuery { provider, limit: 10, ..JobQuery::default() };
            let page = fixture.store.list(&scope, &query).await.unwrap();
            assert_eq!(ids(&page), expected, "{query:?}");
        }
    }
}

/// State, provider and words together, in pages of one.
pub async fn i2_filters_narrow_together_page_by_page(fixture: Fixture) {
    let mut expected = Vec::new();
    for number in 0..6 {
        let title = if number % 2 == 0 { "even leases" } else { "odd leases" };
        let profile = Profile::new(if number < 4 { "research" } else { "search" });
        let job = fixture.add(NewJob { title: title.to_owned(), profile, ..a_job() }).await;
        if number % 2 == 0 && number < 4 {
            expected.insert(0, job.id);
        }
        fixture.cancel(&job.id).await;
    }
    titled(&fixture, "even leases").await;
    for scope in [Scope::Owner(alice()), Scope::Operator] {
        let mut query = JobQuery {
            states: vec![StateKind::Cancelled],
            words: Some("lease even".to_owned()),
            provider: Some("research".to_owned()),
            limit: 1,
            ..JobQuery::default()
        };
        let mut seen = Vec::new();
        loop {
            let page = fixture.store.list(&scope, &query).await.unwrap();
            seen.extend(ids(&page));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected, "{scope:?}");
    }
}

/// First the reserved amount, then the cost; a free job has no charge.
pub async fn i2_a_summary_says_what_was_paid(fixture: Fixture) {
    let reservation = Some(a_reservation(40, None));
    fixture.store.insert(Insert { reservation, ..an_insert(a_job()) }).await.unwrap();
    let reserved = only(&fixture).await;
    let charge = |cents, is_final| Some(SummaryCharge { amount: a_cost(cents), is_final });
    assert_eq!((reserved.charge, reserved.provider.as_str()), (charge(40, false), "research"));
    let claimed = fixture.claim().await;
    let running = Checkpoint::Running(a_run("resp_1"));
    fixture.store.checkpoint(&claimed.lease, &running).await.unwrap();
    let output = Output { cost: Cost::Reported(a_cost(55)), ..a_report() };
    let model = output.model.clone();
    let succeed = Settlement::Succeed { output: output.into(), raw: None };
    fixture.store.settle(&claimed.lease, succeed).await.unwrap();
    let settled = only(&fixture).await;
    assert_eq!((settled.charge, settled.model), (charge(55, true), model));
}

/// An owner cannot learn the number of other owners' jobs.
pub async fn i2_states_are_counted_up_to_a_bound_and_for_one_owner(fixture: Fixture) {
    fixture.add_succeeded().await;
    for _ in 0..3 {
        let job = fixture.add(a_job()).await;
        fixture.cancel(&job.id).await;
    }
    fixture.add_claimed().await;
    fixture.add(a_job()).await;
    fixture.add(NewJob { owner: bob(), ..a_job() }).await;
    let counts = async |scope: Scope, at_most| {
        let counts = fixture.store.counts(&scope, at_most).await.unwrap();
        let states: Vec<StateKind> = counts.iter().map(|count| count.state).collect();
        assert_eq!(states, StateKind::ALL);
        counts.iter().map(|count| count.jobs).collect::<Vec<_>>()
    };
    let by_state = |of: &dyn Fn(StateKind) -> u32| -> Vec<u32> {
        StateKind::ALL.iter().map(|state| of(*state)).collect()
    };
    let alices = by_state(&|state| match state {
        StateKind::Queued | StateKind::Running | StateKind::Succeeded => 1,
        StateKind::Waiting | StateKind::Failed => 0,
        StateKind::Cancelled => 3,
    });
    assert_eq!(counts(Scope::Owner(alice()), 100).await, alices);
    let bounded: Vec<u32> = alices.iter().map(|count| (*count).min(2)).collect();
    assert_eq!(counts(Scope::Owner(alice()), 2).await, bounded);
    let bobs = by_state(&|state| u32::from(state == StateKind::Queued));
    assert_eq!(counts(Scope::Owner(bob()), 100).await, bobs);
    let all: Vec<u32> = alices.iter().zip(&bobs).map(|(one, other)| one + other).collect();
    assert_eq!(counts(Scope::Operator, 100).await, all);
}

/// No part of the question stays behind.
pub async fn i2_the_words_of_a_removed_job_find_nothing(fixture: Fixture) {
    let job = titled(&fixture, "leases").await;
    fixture.cancel(&job.id).await;
    let before = Prune::EndedBefore(fixture.clock_now().after(Duration::from_secs(1)));
    fixture.store.prune(&Scope::Owner(alice()), &before).await.unwrap();
    let next = titled(&fixture, "fences").await;
    assert!(worded(&fixture, "leases").await.jobs.is_empty());
    assert_eq!(ids(&worded(&fixture, "fences").await), [next.id]);
}

async fn worded(fixture: &Fixture, text: &str) -> JobPage {
    list(fixture, JobQuery { words: Some(text.to_owned()), limit: 10, ..JobQuery::default() }).await
}

fn expected(job: &Job) -> Summary {
    Summary {
        id: job.id,
        owner: job.new.owner.clone(),
        conversation: job.new.conversation.clone(),
        workflow: job.new.workflow.clone(),
        provider: job.new.profile.provider().to_owned(),
        model: None,
        charge: None,
        title: job.new.title.clone(),
        visibility: job.new.visibility,
        state: job.state.kind(),
        was_claimed: job.was_claimed(),
        session: Some("tuesday".to_owned()),
        failures: 0,
        code: None,
        progress: job.progress.clone(),
        created_at: START,
        updated_at: job.updated_at,
        ended_at: None,
    }
}

async fn only(fixture: &Fixture) -> Summary {
    let mut page = list(fixture, JobQuery { limit: 10, ..JobQuery::default() }).await;
    assert_eq!(page.jobs.len(), 1);
    page.jobs.remove(0)
}

async fn list(fixture: &Fixture, query: JobQuery) -> JobPage {
    fixture.store.list(&Scope::Owner(alice()), &query).await.unwrap()
}

async fn search(fixture: &Fixture, text: &str) -> JobPage {
    list(fixture, JobQuery { search: Some(text.to_owned()), limit: 10, ..JobQuery::default() })
        .await
}

async fn prefixed(fixture: &Fixture, prefix: &str) -> JobPage {
    list(
        fixture,
        JobQuery { id_prefix: Some(prefix.to_owned()), limit: 100, ..JobQuery::default() },
    )
    .await
}

async fn titled(fixture: &Fixture, title: &str) -> Job {
    fixture.add(NewJob { title: title.to_owned(), ..a_job() }).await
}

fn ids(page: &JobPage) -> Vec<JobId> {
    page.jobs.iter().map(|summary| summary.id).collect()
}
