//! Failover: a PostgreSQL primary is killed under load and its standby promoted, repeatedly. With a synchronous standby
//! nothing that was acknowledged may be lost, and no change number may be used twice; with an asynchronous one the loss
//! is measured. A real server runs jobs across each promotion: every remaining job must end.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a proof stops at the first broken promise, and prints"
)]

mod cluster;
mod server;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Parser;
use cluster::Pair;
use outlast_core::{
    InsertOutcome, Job, JobId, NewJob, OwnerId, Profile, Rev, Scope, Store, Visibility,
};
use outlast_store::{Judgement, PostgresOptions, PostgresStore};
use outlast_testkit::store_suite::an_insert;
use serde_json::json;
use server::RunningServer;

/// Kills primaries and compares the acknowledged jobs with those that are left.
#[derive(Parser)]
struct Cli {
    /// The program whose jobs run across each promotion
    #[arg(long)]
    binary: PathBuf,
    /// The number of primaries to kill
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// The standby does not confirm commits: lost jobs are counted
    #[arg(long)]
    asynchronous: bool,
}

/// Callers that insert at the same time, over two processes' worth of connections.
const WRITERS: usize = 8;

/// The answers that the callers received.
#[derive(Default)]
struct Told {
    jobs: Mutex<Vec<Acknowledged>>,
    refused: Mutex<u64>,
    done: AtomicBool,
    promoted: AtomicBool,
    killed: AtomicBool,
}

/// A job that was acknowledged.
struct Acknowledged {
    id: JobId,
    rev: Rev,
    process: usize,
    /// True if the answer came before the primary was killed.
    is_before: bool,
    /// True if it was requested after the standby was promoted.
    is_after: bool,
}

#[tokio::main]
async fn main() {
    let cli = Cli::parse();
    let (mut acknowledged, mut lost, mut refused) = (0, 0, 0);
    for round in 1..=cli.rounds {
        let pair = Pair::start(!cli.asynchronous).await;
        let told = Arc::new(Told::default());
        let mut writers = tokio::task::JoinSet::new();
        for process in 0..2 {
            let store = Arc::new(open(&pair.url).await);
            for writer in 0..WRITERS / 2 {
                let owner = format!("writer-{process}-{writer}");
                writers.spawn(write(Arc::clone(&store), process, owner, Arc::clone(&told)));
            }
        }
        let mut server = RunningServer::start(&cli.binary, &pair.url).await;
        server.start_jobs(Duration::from_secs(1)).await;
        // The standby lags a second behind, unless the primary waits for it.
        pair.hold_replication_back();
        server.start_jobs(Duration::from_secs(1)).await;
        told.killed.store(true, Ordering::SeqCst);
        pair.kill_primary();
        pair.promote_standby();
        told.promoted.store(true, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(3)).await;
        told.done.store(true, Ordering::SeqCst);
        writers.join_all().await;
        let missing = missing(&open(&pair.url).await, &told).await;
        let jobs = told.jobs.lock().unwrap().len();
        let twice = given_twice(&told.jobs.lock().unwrap());
        assert!(twice.is_empty(), "change numbers were given out twice: {twice:?}");
        assert!(cli.asynchronous || missing == 0, "{missing} of {jobs} acknowledged jobs are lost");
        let ended = server.end().await;
        println!(
            "round {round}: {jobs} jobs acknowledged, {missing} lost; {ended} jobs of a server ended"
        );
        acknowledged += jobs;
        lost += missing;
        refused += *told.refused.lock().unwrap();
    }
    println!(
        "{} promotions: {acknowledged} jobs acknowledged, {lost} lost, {refused} refused while no primary was there, no change \
         number twice",
        cli.rounds
    );
}

async fn open(url: &str) -> PostgresStore {
    let options = PostgresOptions {
        url: url.to_owned(),
        clock: None,
        judgement: Judgement::default(),
        notices: outlast_core::EndNotices::Off,
        limits: outlast_store::ConnectionLimits::default(),
        state_dir: None,
    };
    PostgresStore::open(options).await.unwrap()
}

/// Returns the change numbers of more than one commit. Jobs of one commit share a number. Two processes never do, nor
/// do an answer before the kill and a request after the promotion.
fn given_twice(jobs: &[Acknowledged]) -> Vec<Rev> {
    let mut by_rev: HashMap<Rev, Vec<&Acknowledged>> = HashMap::new();
    for job in jobs {
        by_rev.entry(job.rev).or_default().push(job);
    }
    let is_twice = |jobs: &[&Acknowledged]| {
        jobs.iter().any(|job| job.process != jobs[0].process)
            || (jobs.iter().any(|job| job.is_before) && jobs.iter().any(|job| job.is_after))
    };
    by_rev.into_iter().filter(|(_, jobs)| is_twice(jobs)).map(|(rev, _)| rev).collect()
}

async fn write(store: Arc<PostgresStore>, process: usize, owner: String, told: Arc<Told>) {
    while !told.done.load(Ordering::SeqCst) {
        let insert = an_insert(a_job(&owner));
        let is_after = told.promoted.load(Ordering::SeqCst);
        match store.insert(insert).await {
            Ok(InsertOutcome::New(job) | InsertOutcome::Existing { job, .. }) => {
                let is_before = !told.killed.load(Ordering::SeqCst);
                let Job { id, rev, .. } = job;
                let acknowledged = Acknowledged { id, rev, process, is_before, is_after };
                told.jobs.lock().unwrap().push(acknowledged);
            }
            Err(_) => *told.refused.lock().unwrap() += 1,
        }
    }
}

fn a_job(owner: &str) -> NewJob {
    NewJob {
        owner: OwnerId::new(owner),
        conversation: None,
        subject: None,
        profile: Profile::new("failover"),
        workflow: "failover".to_owned(),
        title: "Does it last?".to_owned(),
        request: json!({}).into(),
        priority: 0,
        visibility: Visibility::Promised,
        max_failures: 1,
        attempt_timeout: Duration::from_secs(60),
        life: None,
        keep: None,
    }
}

async fn missing(store: &PostgresStore, told: &Told) -> usize {
    let ids: Vec<JobId> = told.jobs.lock().unwrap().iter().map(|job| job.id).collect();
    let mut missing = 0;
    for id in ids {
        let found = store.job(&Scope::Operator, &id).await.unwrap();
        missing += usize::from(found.is_none());
    }
    missing
}
