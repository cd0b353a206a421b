//! No step of the port scans all jobs, however many have ended.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_core::{
    ChangeWait, Checkpoint, ConversationId, ConversationQuery, Cost, Cursor, Day, Insert,
    InsertOutcome, JobQuery, Key, NanoUsd, NewJob, NewStep, OwnerId, Page, Progress, Prune,
    RescueBy, Resend, Rev, Scope, Settlement, SpendBy, SpendQuery, StateKind, StepEnd, StepResult,
    Store, Timestamp,
};
use outlast_store::PostgresStore;
use outlast_testkit::store_suite::{LEASE, a_job, a_key, a_report, a_run, profiles, worker};
use tokio_postgres::Client;

use crate::database::Database;

/// Adds jobs that ended long ago, of many owners, half of them in conversations, with all their related rows.
const FILL: &str = "
    insert into owners (owner) select 'owner-' || n from generate_series(0, 99) as n;
    insert into jobs (id, owner, conversation, turn, profile, workflow, title, title_folded, priority, visibility, max_failures,
      attempt_timeout, state, ended_at, fence, checkpoint, failures, failed, created_at, updated_at, expires_at, removable_at, bytes)
    select md5(n::text), 'owner-' || n % 100, case when n % 2 = 0 then 'conversation-' || n / 4 end, n, 'research', 'research',
      'Question ' || n, 'question ' || n, 0, 'promised', 1, 1000, 'failed', n, 1, (select checkpoint from jobs), '[]', 0, n, n,
      4102444800000, 4102444800000, 100
    from generate_series(1, 1000000) as n;
    insert into bodies (job, ask) select seq, '{}' from jobs on conflict do nothing;
    insert into revs (job, rev) select seq, 0 from jobs on conflict do nothing;
    insert into keys (owner, text, job, input_hash, made_at, holds, span)
      select owner, id, seq, '\\x00', 0, 'for', 1 from jobs where seq % 10 = 0;
    analyze";

/// The number of sequential scans so far, by table.
async fn scans(client: &Client) -> BTreeMap<String, i64> {
    let select = "select relname::text, coalesce(seq_scan, 0) from pg_stat_user_tables
         where schemaname = current_schema() and relname in ('jobs', 'bodies', 'revs', 'keys')";
    let rows = client.query(select, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn insert(job: NewJob, key: Option<Key>) -> Insert {
    Insert {
        job,
        key,
        max_unfinished: 1_000,
        max_bytes: u64::MAX,
        resumed_run: None,
        takeover: None,
        reservation: None,
        initial_worker: None,
    }
}

async fn add(store: &PostgresStore, job: NewJob) -> outlast_core::Job {
    match store.insert(insert(job, None)).await.unwrap() {
        InsertOutcome::New(job) => job,
        InsertOutcome::Existing { job, .. } => panic!("{} existed", job.id),
    }
}

/// F2: calls every method of the port once.
async fn everything(store: &PostgresStore) {
    let me = worker("me");
    let owner = Scope::Owner(OwnerId::new("owner-7"));
    let conversation = ConversationId::new("conversation-10");
    let talk = NewJob { conversation: Some(ConversationId::new("talk")), ..a_job() };
    for text in ["one", "one", "two"] {
        store.insert(insert(a_job(), Some(a_key(text, 7)))).await.unwrap();
    }
    let talked = add(store, talk).await;
    let taken = add(store, a_job()).await;
    for _ in 0..5 {
        add(store, a_job()).await;
    }
    store.claim_by_id(&me, &profiles(), &taken.id, LEASE).await.unwrap().unwrap();
    let mut leases = Vec::new();
    for _ in 0..4 {
        leases.push(store.claim(&me, &profiles(), LEASE).await.unwrap().unwrap().lease);
    }
    store.renew(&leases, LEASE).await.unwrap();
    store.checkpoint(&leases[0], &Checkpoint::Beginning { key: "k".to_owned() }).await.unwrap();
    store
        .show_progress(&leases[0], &Progress { percent: Some(1), message: "on".to_owned() })
        .await
        .unwrap();
    store.checkpoint(&leases[0], &Checkpoint::Running(a_run("run"))).await.unwrap();
    let step = NewStep {
        key: "read".to_owned(),
        kind: "read".to_owned(),
        input_digest: [7; 32],
        bound: NanoUsd(0),
        resend: Resend::Allow,
        max_bytes: u64::MAX,
    };
    store.begin_step(&leases[0], &step).await.unwrap();
    let end = StepEnd::free(StepResult::Done(String::new()));
    store.end_step(&leases[0], "read", &end).await.unwrap();
    let page = Page {
        digest: [7; 32],
        url: String::new(),
        final_url: String::new(),
        status: 200,
        media_type: None,
        fetched_at: Timestamp::from_millis(1),
        truncated: false,
        text: String::new(),
    };
    store.save_page(&leases[0], &page, u64::MAX).await.unwrap();
    store.page(&OwnerId::new("owner-7"), &page.digest).await.unwrap();
    store.cancel(&Scope::Operator, &leases[0].job).await.unwrap();
    assert_eq!(store.pending_stops(&profiles(), 10).await.unwrap().len(), 1);
    store
        .record_stop(&leases[0].job, outlast_core::RemoteStop::Ended, Cost::Unknown)
        .await
        .unwrap();
    store.record_late_run(&leases[0].job, &a_run("late")).await.unwrap();
    let success = Settlement::Succeed { output: a_report().into(), raw: Some(vec![1].into()) };
    store.settle(&leases[1], success).await.unwrap();
    store.settle(&leases[2], Settlement::Release).await.unwrap();
    store.record_answer(&leases[1].job).await.unwrap();
    for dead in [RescueBy::DeadProcess, RescueBy::ExpiredLease] {
        store.rescue(&dead).await.unwrap();
    }
    store.unclaimed_held_calls(&profiles()).await.unwrap();
    store.has_worker(&profiles()[0]).await.unwrap();
    store.count_queued(&profiles()).await.unwrap();
    store.queue_position(&talked.id).await.unwrap();
    store.job(&owner, &talked.id).await.unwrap();
    for scope in [&owner, &Scope::Operator] {
        let queries = [
            JobQuery { limit: 20, ..JobQuery::default() },
            JobQuery { limit: 20, states: vec![StateKind::Failed], ..JobQuery::default() },
            JobQuery { limit: 20, id_prefix: Some("abc".to_owned()), ..JobQuery::default() },
            JobQuery {
                limit: 20,
                search: Some("nothing has it".to_owned()),
                ..JobQuery::default()
            },
        ];
        for query in queries {
            store.list(scope, &query).await.unwrap();
        }
        store.turns(scope, &conversation).await.unwrap();
        store.steps(scope, &leases[0].job).await.unwrap();
        store.newest_about(scope, &leases[0].job, &[StateKind::Succeeded]).await.unwrap();
        let prunes = [
            Prune::Expired,
            Prune::EndedBefore(Timestamp::from_millis(1)),
            Prune::Conversation(ConversationId::new("conversation-11")),
        ];
        for prune in prunes {
            // The conversation does not exist, so this is refused, but only after the query.
            let _ = store.prune(scope, &prune).await;
        }
    }
    let query = ConversationQuery { limit: 20, ..ConversationQuery::default() };
    store.conversations(&OwnerId::new("owner-8"), &query).await.unwrap();
    let wait = ChangeWait { at_most: Duration::ZERO, look_every: Duration::from_secs(1) };
    let now = store.rev().await.unwrap();
    store.changes(now, wait).await.unwrap();
    store.changes(Rev(now.0 - 1), wait).await.unwrap();
    store.deregister_worker(&me).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_no_step_walks_through_all_jobs() {
    let database = Database::fresh().await;
    let first = database.open().await;
    add(&first, a_job()).await;
    first.close().await;
    let client = database.client().await;
    client.batch_execute(FILL).await.unwrap();
    let store = database.open().await;
    let before = scans(&client).await;
    everything(&store).await;
    store.close().await;
    // A connection reports its statistics when it ends.
    tokio::time::sleep(Duration::from_millis(500)).await;
    client.batch_execute("select pg_stat_clear_snapshot()").await.unwrap();
    assert_eq!(scans(&client).await, before, "no table of jobs is read from end to end");
}

/// Adds the jobs of one owner, and a hundred of another. The oldest was cancelled, all others failed. The newest thousand
/// lack a word that all others have.
const FILL_LISTS: &str = "
    insert into jobs (id, owner, conversation, turn, profile, workflow, title, title_folded, priority, visibility, max_failures, attempt_timeout,
      state, ended_at, remote, fence, checkpoint, failures, failed, created_at, updated_at, bytes)
    select md5(n::text), case when n % 1000 = 0 then 'bob' else 'ann' end,
      case when n % 5000 = 1 or n % 1000 = 0 then 'c' || n end, 1, 'research', 'research', 'Question ' || n, 'question ' || n,
      0, 'promised', 1, 1000, case when n = 1 then 'cancelled' else 'failed' end, n, case when n = 1 then 'not_needed' end, 1,
      '{\"at\":\"not_begun\"}', '[]', 0, n, n, 100
    from generate_series(1, 100000) as n;
    insert into search (job, words) select seq, array_to_tsvector(array[case when seq > 99000 then 'new' else 'question' end, 'w' || seq % 3000,
      '§o' || encode(convert_to(owner, 'UTF8'), 'hex'), '§p' || encode(convert_to(provider, 'UTF8'), 'hex')]) from jobs;
    insert into ledger (job, run, owner, provider, model, at, day, amount, kind, state)
      select id, 1, owner, provider, 'model-' || (seq % 3), seq, seq % 30, 5, 'reported', 'spent' from jobs;
    analyze";

/// The number of rows read from these tables.
async fn rows_read(client: &Client) -> i64 {
    let select =
        "select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_user_tables
         where schemaname = current_schema() and relname in ('jobs', 'search', 'ledger', 'ledger_days', 'title_parts')";
    client.query_one(select, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_lists_and_searches_on_postgresql_read_few_of_100_000_jobs() {
    let database = Database::fresh().await;
    database.open().await.close().await;
    let client = database.client().await;
    client.batch_execute(FILL_LISTS).await.unwrap();
    let page = JobQuery { limit: 50, ..JobQuery::default() };
    let words = |text: &str| JobQuery { words: Some(text.to_owned()), ..page.clone() };
    let of = |state| JobQuery { states: vec![state], ..page.clone() };
    let provider = |name: &str, query| JobQuery { provider: Some(name.to_owned()), ..query };
    let operator = "operator";
    let cases = [
        ("ann", page.clone(), 50),
        ("bob", page.clone(), 50),
        (operator, page.clone(), 50),
        (operator, provider("research", of(StateKind::Failed)), 50),
        (operator, provider("research", of(StateKind::Cancelled)), 1),
        ("ann", of(StateKind::Cancelled), 1),
        ("ann", of(StateKind::Succeeded), 0),
        ("ann", provider("none", page.clone()), 0),
        ("ann", words("question"), 50),
        ("ann", words("nothing"), 0),
        ("ann", words("w2999"), 33),
        ("bob", words("question"), 50),
        ("bob", words("question w1000"), 33),
    ];
    for (owner, query, expected) in cases {
        client.batch_execute("select pg_stat_clear_snapshot()").await.unwrap();
        let before = rows_read(&client).await;
        let store = database.open().await;
        let scope = match owner == operator {
            true => Scope::Operator,
            false => Scope::Owner(OwnerId::new(owner)),
        };
        let listed = store.list(&scope, &query).await.unwrap();
        store.close().await;
        assert_eq!(listed.jobs.len(), expected, "{owner} {query:?}");
        // A connection reports its statistics when it ends.
        tokio::time::sleep(Duration::from_millis(500)).await;
        client.batch_execute("select pg_stat_clear_snapshot()").await.unwrap();
        let read = rows_read(&client).await - before;
        assert!((expected as i64..6_000).contains(&read), "{owner} {query:?}: {read} rows");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_searches_in_titles_on_postgresql_read_few_of_100_000_jobs() {
    let database = Database::fresh().await;
    database.open().await.close().await;
    let client = database.client().await;
    client.batch_execute(FILL_LISTS).await.unwrap();
    let store = database.open().await;
    let cases = [
        ("ann", "question", None, 50),
        ("ann", "Question 1", None, 50),
        ("ann", "question 77777", None, 1),
        ("ann", "n 777", Some(Cursor(50_000)), 11),
        ("bob", "00", None, 50),
        ("bob", "question 77777", None, 0),
        ("nobody", "question", None, 0),
        ("ann", "none", None, 0),
        ("ann", "%", None, 0),
    ];
    let list = async |store: &PostgresStore, (owner, text, after, _)| {
        let search = Some(str::to_owned(text));
        let query = JobQuery { search, after, limit: 50, ..JobQuery::default() };
        store.list(&Scope::Owner(OwnerId::new(owner)), &query).await.unwrap()
    };
    let mut expected = Vec::new();
    for case in cases {
        expected.push(list(&store, case).await);
    }
    // The last segment is complete once the transactions of other tests have ended.
    let segments = "select count(*) from title_segments";
    for _ in 0..400 {
        if client.query_one(segments, &[]).await.unwrap().get::<_, i64>(0) == 24 {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(client.query_one(segments, &[]).await.unwrap().get::<_, i64>(0), 24);
    store.close().await;
    client.batch_execute("analyze").await.unwrap();
    for (case, expected) in cases.into_iter().zip(expected) {
        tokio::time::sleep(Duration::from_millis(500)).await;
        client.batch_execute("select pg_stat_clear_snapshot()").await.unwrap();
        let before = rows_read(&client).await;
        let store = database.open().await;
        let listed = list(&store, case).await;
        store.close().await;
        assert_eq!(listed, expected, "{case:?}");
        assert_eq!(listed.jobs.len(), case.3, "{case:?}");
        // A connection reports its statistics when it ends.
        tokio::time::sleep(Duration::from_millis(500)).await;
        client.batch_execute("select pg_stat_clear_snapshot()").await.unwrap();
        let read = rows_read(&client).await - before;
        assert!(read < 6_000, "{case:?}: {read} rows");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_counts_on_postgresql_read_only_indexes() {
    let database = Database::fresh().await;
    database.open().await.close().await;
    let client = database.client().await;
    client.batch_execute(FILL_LISTS).await.unwrap();
    // A page counts as vacuumed once no transaction of another test is older than its rows.
    let vacuumed = "select relallvisible >= relpages as is_vacuumed from pg_class where oid = 'jobs'::regclass";
    for _ in 0..600 {
        client.batch_execute("vacuum (analyze) jobs").await.unwrap();
        if client.query_one(vacuumed, &[]).await.unwrap().get("is_vacuumed") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    for (scope, failed, cancelled) in [
        (Scope::Owner(OwnerId::new("ann")), 1_000, 1),
        (Scope::Owner(OwnerId::new("bob")), 100, 0),
        (Scope::Owner(OwnerId::new("nobody")), 0, 0),
        (Scope::Operator, 1_000, 1),
    ] {
        client.batch_execute("select pg_stat_clear_snapshot()").await.unwrap();
        let before = rows_read(&client).await;
        let store = database.open().await;
        let counts = store.counts(&scope, 1_000).await.unwrap();
        store.close().await;
        let counts: Vec<u32> = counts.iter().map(|count| count.jobs).collect();
        assert_eq!(counts, [0, 0, 0, 0, failed, cancelled], "{scope:?}");
        // A connection reports its statistics when it ends.
        tokio::time::sleep(Duration::from_millis(500)).await;
        client.batch_execute("select pg_stat_clear_snapshot()").await.unwrap();
        let read = rows_read(&client).await - before;
        assert!(read < 10, "{scope:?}: {read} rows");
    }
}

/// The list and the sums of an owner without jobs cost no more than those of other owners, and those of other owners read few
/// rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_conversations_and_sums_on_postgresql_read_few_of_100_000_rows() {
    let database = Database::fresh().await;
    database.open().await.close().await;
    let client = database.client().await;
    client.batch_execute(FILL_LISTS).await.unwrap();
    // Adds the changes of the ledger to its days.
    let store = database.open().await;
    let spend = SpendQuery { by: SpendBy::Provider, since: Day(0) };
    let sums = store.spend(&Scope::Operator, &spend).await.unwrap();
    assert_eq!(sums.iter().map(|sum| sum.runs).sum::<u64>(), 100_000);
    // The fill has neither bodies nor counts of owners.
    let faults = store.check().await.unwrap().into_iter();
    let faults = faults.filter(|it| !it.ends_with("has no body") && !it.contains("wrong counts"));
    assert_eq!(faults.collect::<Vec<_>>(), Vec::<String>::new());
    store.close().await;
    let changes = "select count(*) from ledger_changes";
    assert_eq!(client.query_one(changes, &[]).await.unwrap().get::<_, i64>(0), 0);
    client.batch_execute("analyze").await.unwrap();
    for (owner, states, shown, runs) in [
        ("ann", vec![], 20, 99_900),
        ("bob", vec![], 50, 100),
        ("nobody", vec![], 0, 0),
        ("nobody", vec![StateKind::Failed], 0, 0),
        ("ann", vec![StateKind::Cancelled], 1, 99_900),
        ("ann", vec![StateKind::Running], 0, 99_900),
    ] {
        client.batch_execute("select pg_stat_clear_snapshot()").await.unwrap();
        let before = rows_read(&client).await;
        let store = database.open().await;
        let owner = OwnerId::new(owner);
        let query = ConversationQuery { states, limit: 50, after: None };
        let page = store.conversations(&owner, &query).await.unwrap();
        let sums = store.spend(&Scope::Owner(owner.clone()), &spend).await.unwrap();
        store.close().await;
        assert_eq!(page.conversations.len(), shown, "{owner:?} {query:?}");
        assert_eq!(sums.iter().map(|sum| sum.runs).sum::<u64>(), runs, "{owner:?}");
        // A connection reports its statistics when it ends.
        tokio::time::sleep(Duration::from_millis(500)).await;
        client.batch_execute("select pg_stat_clear_snapshot()").await.unwrap();
        let read = rows_read(&client).await - before;
        assert!(read < 6_000, "{owner:?} {query:?}: {read} rows");
    }
}
