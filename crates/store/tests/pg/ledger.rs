//! The ledger in a database that many machines share (G6).

use std::sync::Arc;

use outlast_core::{
    Day, Insert, InsertOutcome, RecoverySemantics, ResendPolicy, ResumePolicy, Scope, SpendBy,
    SpendQuery, SpendSum, Store, StoreError,
};
use outlast_store::{PostgresStore, RestoreError};
use outlast_testkit::store_suite::{a_cost, a_job, a_reservation, an_insert};

use crate::database::Database;

fn paid(per_day: Option<u64>) -> Insert {
    Insert { reservation: Some(a_reservation(10, per_day)), ..an_insert(a_job()) }
}

async fn spent(store: &PostgresStore) -> Vec<SpendSum> {
    let query = SpendQuery { by: SpendBy::Provider, since: Day(0) };
    store.spend(&Scope::Operator, &query).await.unwrap()
}

/// G6: of 200 concurrent starts on two machines, none exceeds the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g6_200_starts_at_once_on_two_machines_stay_within_the_days_limit() {
    let database = Database::fresh().await;
    let machines = [Arc::new(database.open().await), Arc::new(database.open().await)];
    let starts: Vec<_> = (0..200)
        .map(|number| {
            let store = Arc::clone(&machines[number % 2]);
            tokio::spawn(async move { store.insert(paid(Some(1_205))).await })
        })
        .collect();
    let mut made = 0;
    for start in starts {
        match start.await.unwrap() {
            Ok(InsertOutcome::New(_)) => made += 1,
            Err(StoreError::BudgetExceeded(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(made, 120);
    let sums = spent(&machines[0]).await;
    assert_eq!((sums[0].reserved, sums[0].runs), (a_cost(1_200), 120));
}

/// G6: a database of schema 1 is updated. A job from before the update has no row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_a_database_without_a_ledger_gets_one() {
    let database = Database::fresh().await;
    let client = database.client().await;
    client.batch_execute(include_str!("../../src/postgres/migrations/1.sql")).await.unwrap();
    let made = "insert into meta (store, schema) values (gen_random_uuid(), 1)";
    client.batch_execute(made).await.unwrap();
    let store = database.open().await;
    store.insert(an_insert(a_job())).await.unwrap();
    assert!(spent(&store).await.is_empty());
    store.insert(paid(Some(10))).await.unwrap();
    let refused = store.insert(paid(Some(10))).await;
    assert!(matches!(refused, Err(StoreError::BudgetExceeded(_))), "{refused:?}");
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

/// G6: jobs that a restored dump had not finished may have cost money since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_a_restore_keeps_what_may_have_been_spent_since() {
    let database = Database::fresh().await;
    let store = database.open().await;
    store.insert(paid(None)).await.unwrap();
    store.close().await;
    let semantics = RecoverySemantics {
        resend: ResendPolicy::Never,
        resume: ResumePolicy::Always,
        can_stop: true,
    };
    let semantics_of = move |_: &outlast_core::Profile, _: &outlast_core::Request| Some(semantics);
    // The session of the closed store ends a moment after the close.
    let restoring = async {
        while let Err(error) = PostgresStore::restore_in_place(
            database.url(),
            None,
            &semantics_of,
            outlast_core::EndNotices::Off,
            true,
        )
        .await
        {
            assert!(matches!(error, RestoreError::InUse), "{error:?}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), restoring).await.unwrap();
    let store = database.open().await;
    assert_eq!(spent(&store).await[0].maybe, a_cost(10));
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}
