//! The operations of a database administrator: rights, checks, and a restored dump.

use std::time::Duration;

use futures_util::future::join_all;
use outlast_core::rules::RestoredOutcome;
use outlast_core::{
    Checkpoint, Code, ConversationId, EndNotices, InsertOutcome, Job, JobQuery, JobState, NewJob,
    NoticeClaim, Prune, RecoverySemantics, ResendPolicy, ResumePolicy, Scope, Settlement, Store,
    StoreError,
};
use outlast_store::{Judgement, PostgresOptions, PostgresStore, RestoreError};
use outlast_testkit::store_suite::{LEASE, a_job, a_report, a_run, an_insert, profiles, worker};
use uuid::Uuid;

use outlast_testkit::postgres::server;

use crate::database::Database;

async fn add(store: &PostgresStore) -> Job {
    match store.insert(an_insert(a_job())).await.unwrap() {
        InsertOutcome::New(job) => job,
        InsertOutcome::Existing { job, .. } => panic!("{} existed", job.id),
    }
}

/// A role that may use tables but not create them. docs/postgres.md lists its grants.
struct Role {
    name: String,
    url: String,
    schema: String,
}

impl Role {
    async fn new(database: &Database) -> Self {
        let name = format!("server_{}", Uuid::new_v4().simple());
        let schema = database.url().rsplit_once("%3D").unwrap().1.to_owned();
        database.client().await.batch_execute(&format!("create role {name} login")).await.unwrap();
        let url = database.url().replacen("postgres://outlast@", &format!("postgres://{name}@"), 1);
        assert_ne!(url, database.url(), "{}", server().unwrap());
        Self { name, url, schema }
    }

    async fn grant(&self, database: &Database) {
        let Self { name, schema, .. } = self;
        let grants = format!(
            "grant usage on schema {schema} to {name};
             grant select, insert, update, delete on all tables in schema {schema} to {name};
             grant usage, select, update on all sequences in schema {schema} to {name};"
        );
        database.client().await.batch_execute(&grants).await.unwrap();
    }

    async fn open(&self) -> Result<PostgresStore, StoreError> {
        let judgement = Judgement::default();
        let notices = EndNotices::Off;
        let url = self.url.clone();
        PostgresStore::open(PostgresOptions {
            url,
            clock: None,
            judgement,
            notices,
            limits: outlast_store::ConnectionLimits::default(),
            state_dir: None,
        })
        .await
    }

    async fn refused(&self) -> String {
        match self.open().await {
            Ok(_) => panic!("it was opened"),
            Err(StoreError::Unavailable(why)) => why.to_string(),
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// F1: a server whose role may not create tables works on a database that another role has prepared. If it is not prepared,
/// the error states the next step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_a_role_without_the_right_to_make_tables_can_serve() {
    let database = Database::fresh().await;
    let role = Role::new(&database).await;
    let refused = role.refused().await;
    assert!(refused.contains("has no tables yet"), "{refused}");
    assert!(refused.contains("outlast store migrate"), "{refused}");
    role.grant(&database).await;
    let refused = role.refused().await;
    assert!(refused.contains("outlast store migrate"), "{refused}");

    database.open().await.close().await;
    role.grant(&database).await;
    let store = role.open().await.unwrap();
    let job = add(&store).await;
    let claimed = store.claim(&worker("w"), &profiles(), LEASE).await.unwrap().unwrap();
    store.checkpoint(&claimed.lease, &Checkpoint::Running(a_run("r"))).await.unwrap();
    store.renew(std::slice::from_ref(&claimed.lease), LEASE).await.unwrap();
    let done = Settlement::Succeed { output: a_report().into(), raw: None };
    store.settle(&claimed.lease, done).await.unwrap();
    let cancelled = add(&store).await;
    store.cancel(&Scope::Operator, &cancelled.id).await.unwrap();
    store.rescue(&outlast_core::RescueBy::DeadProcess).await.unwrap();
    store.rescue(&outlast_core::RescueBy::ExpiredLease).await.unwrap();
    assert!(store.has_worker(&profiles()[0]).await.unwrap());
    store.deregister_worker(&worker("w")).await.unwrap();
    let later = outlast_core::Prune::EndedBefore(store.now().after(Duration::from_secs(60)));
    store.prune(&Scope::Operator, &later).await.unwrap();
    assert_eq!(store.job(&Scope::Operator, &job.id).await.unwrap(), None);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    store.close().await;

    // Tables of an older version, as after an update of only the servers.
    database.client().await.batch_execute("update meta set schema = 0").await.unwrap();
    let refused = role.refused().await;
    assert!(refused.contains("its tables are of schema 0"), "{refused}");
    assert!(refused.contains("outlast store migrate"), "{refused}");
}

/// F1: tables of a newer version are not changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_a_database_of_a_newer_version_is_left_as_it_is() {
    let database = Database::fresh().await;
    database.open().await.close().await;
    let client = database.client().await;
    client.batch_execute("update meta set schema = 99").await.unwrap();
    let options = PostgresOptions {
        url: database.url().to_owned(),
        clock: None,
        judgement: Judgement::default(),
        notices: EndNotices::Off,
        limits: outlast_store::ConnectionLimits::default(),
        state_dir: None,
    };
    let refused = PostgresStore::open(options).await.err().unwrap();
    assert!(matches!(refused, StoreError::Newer { schema: 99 }), "{refused:?}");
    let schema: i32 = client.query_one("select schema from meta", &[]).await.unwrap().get(0);
    assert_eq!(schema, 99);
}

/// F2: of jobs that are inserted together, only the faulty ones fail. These calls are sent before the store begins with the
/// first of them.
#[tokio::test]
async fn f2_a_job_that_cannot_be_kept_takes_no_other_with_it() {
    let database = Database::fresh().await;
    let store = database.open().await;
    let refuse = "alter table jobs add check (title <> 'refused')";
    database.client().await.batch_execute(refuse).await.unwrap();
    let inserts = (0..20).map(|number| {
        let title = if number == 7 { "refused" } else { "kept" }.to_owned();
        store.insert(an_insert(NewJob { title, ..a_job() }))
    });
    let is_kept: Vec<bool> = join_all(inserts).await.iter().map(Result::is_ok).collect();
    assert_eq!(is_kept, (0..20).map(|number| number != 7).collect::<Vec<_>>());
}

/// F2: the same for settlements.
#[tokio::test]
async fn f2_an_end_that_cannot_be_kept_takes_no_other_with_it() {
    let database = Database::fresh().await;
    let store = database.open().await;
    let mut leases = Vec::new();
    for number in 0..5 {
        let title = if number == 3 { "refused" } else { "kept" }.to_owned();
        store.insert(an_insert(NewJob { title, ..a_job() })).await.unwrap();
        let claimed = store.claim(&worker("w1"), &profiles(), LEASE).await.unwrap().unwrap();
        leases.push(claimed.lease);
    }
    let refuse = "alter table jobs add check (title <> 'refused' or state = 'running')";
    database.client().await.batch_execute(refuse).await.unwrap();
    let ends = leases.iter().map(|lease| {
        store.settle(lease, Settlement::Succeed { output: a_report().into(), raw: None })
    });
    let is_kept: Vec<bool> = join_all(ends).await.iter().map(Result::is_ok).collect();
    assert_eq!(is_kept, [true, true, true, false, true]);
}

/// F2: a step that conflicted with another one is retried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_a_step_that_was_undone_by_the_database_is_done_again() {
    let database = Database::fresh().await;
    let store = database.open().await;
    // Simulates a deadlock three times.
    let setup = "create sequence tries;
        create function give_way() returns trigger as $$ begin
            if nextval('tries') < 4 then raise exception using errcode = '40P01'; end if;
            return new;
        end $$ language plpgsql;
        create trigger give_way before insert on jobs for each row execute function give_way()";
    let client = database.client().await;
    client.batch_execute(setup).await.unwrap();
    add(&store).await;
    let tries: i64 = client.query_one("select last_value from tries", &[]).await.unwrap().get(0);
    assert_eq!(tries, 4);
}

/// F1: the server's error code determines the advice to the user.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_a_full_disk_and_damage_are_distinguished() {
    let database = Database::fresh().await;
    let store = database.open().await;
    let setup = "create function refuse() returns trigger as $$ begin
            raise exception 'so it is' using errcode = new.title;
        end $$ language plpgsql;
        create trigger refuse before insert on jobs for each row execute function refuse()";
    database.client().await.batch_execute(setup).await.unwrap();
    let refused = async |code: &str| {
        let insert = an_insert(NewJob { title: code.to_owned(), ..a_job() });
        store.insert(insert).await.unwrap_err()
    };
    assert!(matches!(refused("53100").await, StoreError::Full), "the disk is full");
    for code in ["XX001", "XX002"] {
        let error = refused(code).await;
        let StoreError::Corrupt { at } = error else { panic!("{error:?}") };
        assert_eq!(at, format!("so it is ({code})"));
    }
    let other = refused("XX000").await;
    assert!(matches!(other, StoreError::NotInserted(_)), "{other:?}");
}

/// I6: words of jobs are indexed even if nobody searches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_words_are_put_when_no_one_searches() {
    let database = Database::fresh().await;
    let store = database.open().await;
    for _ in 0..40 {
        add(&store).await;
    }
    let client = database.client().await;
    let owed = async {
        let owes = "select exists (select from unindexed)";
        while client.query_one(owes, &[]).await.unwrap().get(0) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), owed).await.unwrap();
}

/// F1: stores on one server have different ids, which later processes also see.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_a_store_has_its_own_name() {
    let (one, other) = (Database::fresh().await, Database::fresh().await);
    let name = one.open().await.id().to_owned();
    assert_eq!(one.open().await.id(), name);
    assert_ne!(other.open().await.id(), name);
}

/// F1: after a store is closed, a command can use the database exclusively.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_a_closed_store_holds_no_lock() {
    let database = Database::fresh().await;
    let client = database.client().await;
    for _ in 0..20 {
        let store = database.open().await;
        store.close().await;
        let alone = "select pg_try_advisory_lock(lock_class('meta') | 1)";
        assert!(client.query_one(alone, &[]).await.unwrap().get::<_, bool>(0));
        client.batch_execute("select pg_advisory_unlock_all()").await.unwrap();
    }
}

/// F1: a command that needs the database exclusively does not wait forever for a session that locks its tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_a_restore_of_locked_tables_ends() {
    let database = Database::fresh().await;
    database.open().await.close().await;
    let client = database.client().await;
    client.batch_execute("begin; lock table jobs").await.unwrap();
    let semantics_of = |_: &outlast_core::Profile, _: &outlast_core::Request| None;
    let restoring =
        PostgresStore::restore_in_place(database.url(), None, &semantics_of, EndNotices::Off, true);
    let ended = tokio::time::timeout(Duration::from_secs(60), restoring).await;
    let Err(RestoreError::Store(StoreError::Unavailable(error))) = ended.unwrap() else {
        panic!("it is refused")
    };
    assert!(error.to_string().contains("lock timeout"), "{error}");
}

/// F1: the connections shown to an operator are the actual ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_open_connections_are_counted() {
    let store = Database::fresh().await.open().await;
    add(&store).await;
    let connections = store.connections();
    assert!(connections.open > 0 && connections.idle <= connections.open, "{connections:?}");
    assert_eq!(connections.waiting, 0, "{connections:?}");
    let reported = async {
        while store.connections().lag.is_zero() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reported).await.expect("a notice takes time");
}

/// Damage is found, and a working store is reported as sound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_damage_is_found_and_a_sound_database_is_not_blamed() {
    let database = Database::fresh().await;
    let store = database.open().await;
    let mut jobs = Vec::new();
    for _ in 0..6 {
        jobs.push(add(&store).await.id);
    }
    let claimed = store.claim(&worker("w"), &profiles(), LEASE).await.unwrap().unwrap();
    let done = Settlement::Succeed { output: a_report().into(), raw: None };
    store.settle(&claimed.lease, done).await.unwrap();
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    let client = database.client().await;
    let damages = [
        ("delete from bodies where job = 2", "has no body"),
        ("delete from revs where job = 3", "has no change number"),
        ("update bodies set output = '{}' where job = 4", "has an output"),
        ("update jobs set failures = 'rubbish' where seq = 5", "failures of job"),
        ("update jobs set removable_at = 7 where seq = 6", "wrong removable_at"),
        ("update owners set bytes = bytes + 1", "wrong counts"),
    ];
    for (damage, _) in damages {
        client.batch_execute(damage).await.unwrap();
    }
    let found = store.check().await.unwrap();
    for (_, reported) in damages {
        assert!(found.iter().any(|line| line.contains(reported)), "{reported}: {found:?}");
    }
    for id in &jobs[1..] {
        assert!(found.iter().any(|line| line.contains(&id.to_string())), "{id}: {found:?}");
    }
    // More jobs than one batch of the check reads.
    let more = join_all((0..200).map(|_| store.insert(an_insert(a_job())))).await;
    assert!(more.iter().all(Result::is_ok));
    let damage = "update jobs set removable_at = 7 where seq = (select max(seq) from jobs)";
    client.batch_execute(damage).await.unwrap();
    let with_last = store.check().await.unwrap();
    assert_eq!(with_last.len(), found.len() + 1, "{with_last:?}");
}

/// B9a, F1: after a dump was restored, its unfinished jobs are not paid for a second time. The restore requires the
/// operator's consent, because a database does not show that it is an older copy, and is refused while servers use the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b9a_what_a_restored_dump_had_not_finished_is_not_bought_again() {
    let database = Database::fresh().await;
    let store = database.open().await;
    let queued = add(&store).await;
    let resumed = add(&store).await;
    let first = store.claim(&worker("w"), &profiles(), LEASE).await.unwrap().unwrap();
    store.settle(&first.lease, Settlement::Release).await.unwrap();
    let claimed =
        store.claim_by_id(&worker("w"), &profiles(), &resumed.id, LEASE).await.unwrap().unwrap();
    store.checkpoint(&claimed.lease, &Checkpoint::Running(a_run("r"))).await.unwrap();
    let semantics = RecoverySemantics {
        resend: ResendPolicy::Never,
        resume: ResumePolicy::Always,
        can_stop: true,
    };
    let semantics_of = move |_: &outlast_core::Profile, _: &outlast_core::Request| Some(semantics);
    let in_use =
        PostgresStore::restore_in_place(database.url(), None, &semantics_of, EndNotices::Off, true)
            .await;
    assert!(matches!(in_use, Err(RestoreError::InUse)), "{in_use:?}");
    let rev = store.rev().await.unwrap();
    store.close().await;
    let unforced = PostgresStore::restore_in_place(
        database.url(),
        None,
        &semantics_of,
        EndNotices::Off,
        false,
    )
    .await;
    assert!(matches!(unforced, Err(RestoreError::Current { jobs: 1 })), "{unforced:?}");
    let kept = EndNotices::Kept;
    let restored = PostgresStore::restore_in_place(database.url(), None, &semantics_of, kept, true)
        .await
        .unwrap();
    let fates: Vec<_> = restored.jobs.iter().map(|job| (job.job.id, job.fate)).collect();
    assert_eq!(
        fates,
        [(queued.id, RestoredOutcome::Ended), (resumed.id, RestoredOutcome::Resumes)]
    );

    let store = database.open().await;
    let ended = store.job(&Scope::Operator, &queued.id).await.unwrap().unwrap();
    assert!(matches!(ended.state, JobState::Failed { .. }), "{ended:?}");
    assert_eq!(ended.failures.last().unwrap().code, Code::SubmitUnknown);
    assert!(ended.rev.0 > rev.0 + 900_000, "numbers that were given out are not given again");
    let NoticeClaim::Claimed(reported) = store.claim_notice(LEASE).await.unwrap() else {
        panic!("of its end there is a notice")
    };
    assert_eq!(reported.notice.job, queued.id);
    let resumed = store.job(&Scope::Operator, &resumed.id).await.unwrap().unwrap();
    assert!(matches!(resumed.state, JobState::Queued { .. }), "{resumed:?}");
    assert_eq!(
        (resumed.checkpoint, resumed.new.max_failures),
        (Checkpoint::Running(a_run("r")), 0)
    );
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    store.close().await;
}

/// F2: a job that a person removes is deleted even if another step has it locked at the moment.
#[tokio::test]
async fn f2_what_a_person_removes_waits_for_the_step_that_has_it() {
    let database = Database::fresh().await;
    let store = database.open().await;
    let conversation = ConversationId::new("talk");
    let turn = NewJob { conversation: Some(conversation.clone()), ..a_job() };
    store.insert(an_insert(turn)).await.unwrap();
    let claimed = store.claim(&worker("w"), &profiles(), LEASE).await.unwrap().unwrap();
    let done = Settlement::Succeed { output: a_report().into(), raw: None };
    store.settle(&claimed.lease, done).await.unwrap();
    let reader = database.client().await;
    reader.batch_execute("begin; select seq from jobs for key share").await.unwrap();
    let prune = Prune::Conversation(conversation);
    let removing = store.prune(&Scope::Operator, &prune);
    let other = database.client().await;
    let letting_go = async {
        let waits = "select exists (select 1 from pg_stat_activity
             where wait_event_type = 'Lock' and query like '%doomed%')";
        while !other.query_one(waits, &[]).await.unwrap().get::<_, bool>(0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        reader.batch_execute("commit").await.unwrap();
    };
    let both = async { tokio::join!(removing, letting_go).0 };
    let removed = tokio::time::timeout(Duration::from_secs(30), both).await;
    assert_eq!(removed.expect("it waits").unwrap().jobs, 1);
}

/// F1: opening a database whose encoding is not UTF-8 fails; the error states the command that creates a suitable one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_a_database_that_is_not_utf_8_is_refused() {
    let admin = outlast_testkit::postgres::connect(&server().unwrap()).await;
    let name = format!("latin_{}", Uuid::new_v4().simple());
    let create = format!(
        "create database {name} encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C'"
    );
    admin.batch_execute(&create).await.unwrap();
    let url = server().unwrap().replacen("/postgres?", &format!("/{name}?"), 1);
    let options = PostgresOptions {
        url,
        clock: None,
        judgement: Judgement::default(),
        notices: EndNotices::Off,
        limits: outlast_store::ConnectionLimits::default(),
        state_dir: None,
    };
    let Err(StoreError::Unavailable(why)) = PostgresStore::open(options).await else {
        panic!("it was opened");
    };
    let why = why.to_string();
    assert!(why.contains("LATIN1") && why.contains("createdb --encoding=UTF8"), "{why}");
}

/// F1: processes that start at the same time on an empty database all find its tables, whichever of them creates the tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f1_twenty_first_starts_at_once_all_succeed() {
    for _ in 0..5 {
        let database = Database::fresh().await;
        let opened = join_all((0..20).map(|_| {
            let url = database.url().to_owned();
            tokio::spawn(PostgresStore::open(PostgresOptions {
                url,
                clock: None,
                judgement: Judgement::default(),
                notices: EndNotices::Off,
                limits: outlast_store::ConnectionLimits::default(),
                state_dir: None,
            }))
        }));
        for store in opened.await {
            store.unwrap().unwrap().close().await;
        }
    }
}

/// A job that ends while it waits to be indexed is indexed in its final state, and not treated as damaged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_ends_while_it_is_indexed_is_not_taken_for_damaged() {
    let database = Database::fresh().await;
    let store = database.open().await;
    let done = add(&store).await;
    let claimed = store.claim(&worker("w"), &profiles(), LEASE).await.unwrap().unwrap();
    let succeed = Settlement::Succeed { output: a_report().into(), raw: None };
    store.settle(&claimed.lease, succeed).await.unwrap();
    let job = add(&store).await;
    let (done, job) = (done.id.to_string(), job.id.to_string());

    let mut other = database.client().await;
    let tx = other.transaction().await.unwrap();
    tx.execute("select 1 from jobs where id = $1 for update", &[&job]).await.unwrap();
    let query = JobQuery { words: Some("report".to_owned()), limit: 10, ..JobQuery::default() };
    let search = async { store.list(&Scope::Operator, &query).await };
    let end = async {
        // The search is now waiting for the lock.
        let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%for key share%'";
        let watcher = database.client().await;
        tokio::time::timeout(Duration::from_secs(20), async {
            while watcher.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
        tx.execute(
            "update jobs set state = 'succeeded', run_at = null, ended_at = updated_at where id = $1",
            &[&job],
        )
        .await
        .unwrap();
        tx.execute(
            "update bodies set output = (select output from bodies join jobs on jobs.seq = bodies.job where id = $2)
             where job = (select seq from jobs where id = $1)",
            &[&job, &done],
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
    };
    let (found, ()) = tokio::join!(search, end);
    found.unwrap();
    let client = database.client().await;
    let indexed = "select count(*) from search join jobs on jobs.seq = search.job where id = $1";
    tokio::time::timeout(Duration::from_secs(20), async {
        while client.query_one(indexed, &[&job]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the job is indexed");
    store.close().await;
}
