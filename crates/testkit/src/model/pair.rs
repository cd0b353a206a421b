//! The model and two handles of the tested store. Applies an operation to both, compares their answers, and
//! then everything a reader can see.

mod observe;
mod rescuing;

use std::collections::HashMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    ChangeWait, ClaimedJob, Clock, CloseReason, Cost, InitialWorker, Insert, InsertOutcome, Job,
    JobId, JobQuery, Lease, NanoUsd, Profile, Progress, Prune, PruneOutcome, RescueBy,
    RescueOutcome, Resend, Rev, Scope, StepDecision, Store, StoreError, Takeover, Timestamp,
    WorkerId,
};
use tempfile::TempDir;

use super::TestedStore;
use super::operation::{
    Action, Op, ScopeSpec, WORKERS, conversation, owner, page, profile, step_end, step_key,
};
use super::questions::question_key;
use super::view::Ids;
use crate::clock::ManualClock;
use crate::store_suite::{a_reservation, a_run};

/// The number of steps between two observations of everything.
const LOOK_EVERY: usize = 4;

const TRIES: usize = 100;

const LONGER_THAN_ANY_LEASE: i64 = 3600;

const LOOK_ONCE: ChangeWait =
    ChangeWait { at_most: Duration::ZERO, look_every: Duration::from_millis(25) };

pub(super) struct StorePair<'a, S: TestedStore> {
    subject: &'a S,
    model: Box<dyn Store>,
    /// Two, except while one is being reopened.
    handles: Vec<S::Handle>,
    /// The clock of both stores.
    clock: Arc<ManualClock>,
    dir: TempDir,
    model_ids: Ids,
    ids: Ids,
    /// Every lease ever granted, as a pair: the model's and the tested store's.
    leases: Vec<(Lease, Lease)>,
    /// The latest lease of each job.
    latest: HashMap<JobId, Lease>,
    workers: [Worker; WORKERS],
    steps: usize,
    /// The revisions after the last step.
    revs: (Rev, Rev),
    /// The last observed version of each job.
    seen: HashMap<JobId, Job>,
}

/// Calls both stores with their own arguments and returns both answers, the model's first.
macro_rules! both {
    ($pair:ident, $via:expr, $arguments:expr, |$store:ident, $argument:ident| $call:expr) => {{
        let (model, tested) = $arguments;
        let model = {
            let ($store, $argument) = (&$pair.model, model);
            $call.await
        };
        let ($store, $argument) = (&$pair.handles[$via], tested);
        (model, $call.await)
    }};
    ($pair:ident, $via:expr, |$store:ident| $call:expr) => {
        both!($pair, $via, ((), ()), |$store, _same| $call)
    };
}
use both;

struct Worker {
    handle: usize,
    /// Incremented with every handle, because a new handle simulates a new process.
    life: u32,
    /// True if it has claimed, and was neither deregistered nor closed with its handle.
    alive: bool,
}

/// A query for all jobs.
fn everything() -> JobQuery {
    JobQuery { limit: 1000, ..JobQuery::default() }
}

impl<'a, S: TestedStore> StorePair<'a, S> {
    pub(super) async fn new(subject: &'a S) -> Self {
        let clock = Arc::new(ManualClock::default());
        let dir = TempDir::new_in(home()).unwrap();
        let mut handles = Vec::new();
        for _ in 0..2 {
            handles.push(subject.open(clock.clone(), dir.path()).await);
        }
        Self {
            subject,
            model: subject.model(clock.clone()),
            handles,
            clock,
            dir,
            model_ids: Ids::default(),
            ids: Ids::default(),
            leases: Vec::new(),
            latest: HashMap::new(),
            workers: [0, 1, 0].map(|handle| Worker { handle, life: 0, alive: false }),
            steps: 0,
            revs: Default::default(),
            seen: HashMap::new(),
        }
    }

    /// Applies the operation to both stores and compares.
    pub(super) async fn step(&mut self, op: &Op) -> Result<(), String> {
        self.apply(op).await?;
        self.steps += 1;
        let other = 1 - op.via;
        self.list(other, &Scope::Operator, everything(), None).await?;
        if self.steps.is_multiple_of(LOOK_EVERY) { self.observe(other).await } else { Ok(()) }
    }

    /// The comparisons after the last step.
    pub(super) async fn end(mut self) -> Result<(), String> {
        for via in [0, 1] {
            self.steps += 1;
            self.observe(via).await?;
        }
        let (model, subject): (Vec<_>, Vec<_>) = self.leases.iter().cloned().unzip();
        let leases = (&model, &subject);
        let lost = both!(self, 0, leases, |store, leases| store.renew(leases, Duration::ZERO));
        let lost = self.same("the leases lost", lost, Ids::lost)?;
        let mut held: Vec<_> = self.ids.lost(subject.iter().map(|lease| lease.job).collect());
        for id in lost.unwrap_or_default() {
            held.swap_remove(
                held.iter().position(|held| *held == id).ok_or("a lease that was never granted")?,
            );
        }
        let all = held.len();
        held.sort();
        held.dedup();
        if held.len() < all {
            return Err("a job has two holders".to_owned());
        }
        let problems = self.subject.problems(&self.handles[1]).await;
        if !problems.is_empty() {
            return Err(format!("the store is unsound: {problems:?}"));
        }
        for (number, worker) in self.workers.iter().enumerate() {
            let dismissed = self.handles[worker.handle].deregister_worker(&self.name(number)).await;
            dismissed.map_err(|error| error.to_string())?;
        }
        self.subject.end(self.handles).await;
        Ok(())
    }

    async fn apply(&mut self, op: &Op) -> Result<(), String> {
        let via = op.via;
        match &op.what {
            Action::Insert {
                job,
                key,
                max_unfinished,
                max_bytes,
                takes_up,
                takes_over,
                about,
                cents_per_day,
                carrier,
            } => {
                let (job, key) = (job.value(), key.as_ref().map(|key| key.value()));
                let is_held = !job.visibility.goes_through_queue();
                let carrier = carrier.filter(|_| is_held && S::CARRIES);
                let via = carrier.map_or(via, |(worker, _)| self.workers[worker].handle);
                let insert = Insert {
                    job,
                    key,
                    max_unfinished: *max_unfinished,
                    max_bytes: *max_bytes,
                    resumed_run: takes_up.then(|| a_run("left")),
                    takeover: None,
                    reservation: cents_per_day.map(|cents| a_reservation(1, cents)),
                    initial_worker: carrier.map(|(worker, seconds)| InitialWorker {
                        worker: self.name(worker),
                        lease: Duration::from_secs(seconds),
                    }),
                };
                let about = about.filter(|_| cents_per_day.is_none());
                let (about_model, about_tested) = about.and_then(|at| self.job(at)).unzip();
                let mut inserts = (insert.clone(), insert);
                if let Some((at, may_resend)) = *takes_over
                    && let Some((model, tested)) = self.job(at)
                {
                    let open_steps = if may_resend { Resend::Allow } else { Resend::Refuse };
                    inserts.0.takeover = Some(Takeover { job: model, open_steps });
                    inserts.1.takeover = Some(Takeover { job: tested, open_steps });
                }
                (inserts.0.job.subject, inserts.1.job.subject) = (about_model, about_tested);
                let model = self.model.insert(inserts.0).await;
                let subject = self.handles[via].insert(inserts.1).await;
                if let Ok(InsertOutcome::New(job)) = &model {
                    self.model_ids.learn(job.id);
                }
                if let Ok(InsertOutcome::New(job)) = &subject {
                    self.ids.learn(job.id);
                }
                if let (
                    Some((worker, _)),
                    Ok(InsertOutcome::New(model)),
                    Ok(InsertOutcome::New(subject)),
                ) = (carrier, &model, &subject)
                {
                    let name = self.name(worker);
                    let lease =
                        |job: &Job| Lease { job: job.id, worker: name.clone(), fence: job.fence };
                    self.leases.push((lease(model), lease(subject)));
                    self.latest.insert(model.id, lease(model));
                }
                if let Some((worker, _)) = carrier {
                    self.workers[worker].alive = true;
                }
                self.same("insert", (model, subject), Ids::inserted)?;
            }
            Action::Claim { worker, profiles, seconds } => {
                let profiles: Vec<Profile> = profiles.iter().copied().map(profile).collect();
                let (name, lease) = (self.name(*worker), Duration::from_secs(*seconds));
                let handle = self.workers[*worker].handle;
                let claimed = both!(self, handle, |store| store.claim(&name, &profiles, lease));
                self.claimed("claim", *worker, claimed)?;
            }
            Action::Take { worker, profiles, job, seconds } => {
                let Some(ids) = self.job(*job) else { return Ok(()) };
                let profiles: Vec<Profile> = profiles.iter().copied().map(profile).collect();
                let (name, lease) = (self.name(*worker), Duration::from_secs(*seconds));
                let handle = self.workers[*worker].handle;
                let claimed = both!(self, handle, ids, |store, id| store
                    .claim_by_id(&name, &profiles, &id, lease));
                self.claimed("take", *worker, claimed)?;
            }
            Action::Renew { leases, seconds } => {
                let lease = Duration::from_secs(*seconds);
                let pairs = leases.iter().filter_map(|at| self.lease(*at));
                let (model, subject): (Vec<_>, Vec<_>) = pairs.unzip();
                let lost = self.model.renew(&model, lease).await;
                let lost = (lost, self.handles[via].renew(&subject, lease).await);
                self.same("renew", lost, Ids::lost)?;
            }
            Action::Checkpoint { lease, at } => {
                let Some(leases) = self.lease(*lease) else { return Ok(()) };
                let at = at.value();
                let wrote = both!(self, via, leases, |store, lease| store.checkpoint(&lease, &at));
                self.same("checkpoint", wrote, as_it_is)?;
            }
            Action::Note { lease, percent } => {
                let Some(leases) = self.lease(*lease) else { return Ok(()) };
                let progress = Progress { percent: *percent, message: "reading".to_owned() };
                let wrote =
                    both!(self, via, leases, |store, lease| store.show_progress(&lease, &progress));
                self.same("note", wrote, as_it_is)?;
            }
            Action::BeginStep { lease, step } => {
                let Some(leases) = self.lease(*lease) else { return Ok(()) };
                let new = step.value();
                let begun = both!(self, via, leases, |store, lease| store.begin_step(&lease, &new));
                self.same("begin_step", begun, as_it_is)?;
            }
            Action::EndStep { lease, key, is_done } => {
                let Some(leases) = self.lease(*lease) else { return Ok(()) };
                let (key, end) = (step_key(*key), step_end(*is_done));
                let ended =
                    both!(self, via, leases, |store, lease| store.end_step(&lease, &key, &end));
                self.same("end_step", ended, as_it_is)?;
            }
            Action::ResolveStep { scope, job, key, is_done } => {
                let Some(ids) = self.job(*job) else { return Ok(()) };
                let (scope, key) = (scope_of(*scope), step_key(*key));
                let decision = if *is_done { StepDecision::Done } else { StepDecision::Rerun };
                let resolved = both!(self, via, ids, |store, id| store
                    .resolve_step(&scope, &id, &key, decision));
                self.same("resolve_step", resolved, as_it_is)?;
            }
            Action::SavePage { lease, digest, max_bytes } => {
                let Some(leases) = self.lease(*lease) else { return Ok(()) };
                let page = page(*digest);
                let saved = both!(self, via, leases, |store, lease| store
                    .save_page(&lease, &page, *max_bytes));
                self.same("save_page", saved, as_it_is)?;
            }
            Action::Ask { lease, question } => {
                let Some(leases) = self.lease(*lease) else { return Ok(()) };
                let new = question.value();
                let asked = both!(self, via, leases, |store, lease| store.ask(&lease, &new));
                self.same("ask", asked, as_it_is)?;
            }
            Action::CloseQuestion { lease, key } => {
                let Some(leases) = self.lease(*lease) else { return Ok(()) };
                let key = question_key(*key);
                let closed = both!(self, via, leases, |store, lease| store.close_question(
                    &lease,
                    &key,
                    CloseReason::Recorded
                ));
                self.same("close_question", closed, as_it_is)?;
            }
            Action::Answer { scope, job, id, is_choice } => {
                let Some(ids) = self.job(*job) else { return Ok(()) };
                let (scope, question) = (scope_of(*scope), id.map(|number| format!("q{number}")));
                let text = if *is_choice { "yes" } else { "perhaps" };
                let answered = both!(self, via, ids, |store, id| store.answer(
                    &scope,
                    &id,
                    question.as_deref(),
                    text
                ));
                self.same("answer", answered, Ids::answered)?;
            }
            Action::Settle { lease, how } => {
                let Some(leases) = self.lease(*lease) else { return Ok(()) };
                let settled =
                    both!(self, via, leases, |store, lease| store.settle(&lease, how.value()));
                self.same("settle", settled, Ids::job)?;
            }
            Action::Cancel { scope, job } => {
                let Some(ids) = self.job(*job) else { return Ok(()) };
                let scope = scope_of(*scope);
                let cancelled = both!(self, via, ids, |store, id| store.cancel(&scope, &id));
                self.same("cancel", cancelled, Ids::cancelled)?;
            }
            Action::RescueProven => {
                if S::BEGUN_WAITS_FOR_ITS_LEASE && self.killed_worker_has_request_in_flight().await
                {
                    self.clock.set(moved(self.clock.now(), LONGER_THAN_ANY_LEASE));
                }
                // The model has one handle and therefore no other workers to watch.
                let watched = self.count_other_holders(via).await;
                let model = self.model.rescue(&RescueBy::DeadProcess).await;
                let model = model.map(|rescued| RescueOutcome { watched, ..rescued });
                let subject = self.rescue(via, &RescueBy::DeadProcess, &model).await;
                self.same("rescue", (model, subject), as_it_is)?;
            }
            Action::RescueExpired => {
                let model = self.model.rescue(&RescueBy::ExpiredLease).await;
                let subject = self.rescue(via, &RescueBy::ExpiredLease, &model).await;
                self.same("rescue", (model, subject), as_it_is)?;
            }
            Action::Owe { job } => {
                let Some(ids) = self.job(*job) else { return Ok(()) };
                let run = a_run("late");
                let owed = both!(self, via, ids, |store, id| store.record_late_run(&id, &run));
                self.same("owe", owed, as_it_is)?;
            }
            Action::Stopped { job, outcome } => {
                let Some(ids) = self.job(*job) else { return Ok(()) };
                let cost = match job % 2 {
                    0 => Cost::Reported(NanoUsd(70_000_000)),
                    _ => Cost::Unknown,
                };
                let stopped =
                    both!(self, via, ids, |store, id| store.record_stop(&id, *outcome, cost));
                self.same("stopped", stopped, as_it_is)?;
            }
            Action::Answered { job } => {
                let Some(ids) = self.job(*job) else { return Ok(()) };
                let answered = both!(self, via, ids, |store, id| store.record_answer(&id));
                self.same("answered", answered, as_it_is)?;
            }
            Action::Dismiss { worker } => {
                let (name, handle) = (self.name(*worker), self.workers[*worker].handle);
                let dismissed = both!(self, handle, |store| store.deregister_worker(&name));
                self.workers[*worker].alive = false;
                self.same("dismiss", dismissed, as_it_is)?;
            }
            Action::PruneExpired { scope } => self.prune(via, *scope, Prune::Expired).await?,
            Action::PruneEnded { scope, seconds_ago } => {
                let moment = moved(self.clock.now(), -seconds_ago);
                self.prune(via, *scope, Prune::EndedBefore(moment)).await?;
            }
            Action::ForgetRuns { profile: number, seconds_ago } => {
                let moment = moved(self.clock.now(), -seconds_ago);
                let profile = profile(*number);
                let forgotten =
                    both!(self, via, |store| store.forget_runs(profile.provider(), moment));
                self.same("forget_runs", forgotten, as_it_is)?;
            }
            Action::PruneConversation { scope, conversation: name } => {
                self.prune(via, *scope, Prune::Conversation(conversation(*name))).await?;
            }
            Action::List { scope, states, search, id_of, limit } => {
                let query = JobQuery {
                    states: states.clone(),
                    search: search.then(|| "OF 1".to_owned()),
                    limit: *limit,
                    ..JobQuery::default()
                };
                let about = id_of.and_then(|at| self.job(at));
                self.list(via, &scope_of(*scope), query, about).await?;
            }
            Action::MoveClock { seconds } => {
                let now = moved(self.clock.now(), *seconds);
                self.clock.set(now);
            }
            Action::Reopen => self.reopen(via).await?,
        }
        Ok(())
    }

    async fn prune(&self, via: usize, scope: ScopeSpec, prune: Prune) -> Result<(), String> {
        let scope = scope_of(scope);
        let model = self.model.prune(&scope, &prune).await;
        let expected = model.as_ref().map_or(0, |pruned| pruned.jobs);
        let mut subject = self.handles[via].prune(&scope, &prune).await;
        for _ in 0..TRIES {
            let Ok(pruned) = subject else { break };
            // Jobs that are removed by age may also be left for the next time.
            if !matches!(prune, Prune::Expired) || pruned.jobs >= expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
            let again = self.handles[via].prune(&scope, &prune).await;
            subject = again.map(|again| PruneOutcome { jobs: pruned.jobs + again.jobs, ..again });
        }
        self.same("prune", (model, subject), as_it_is)?;
        Ok(())
    }

    /// Reads all pages of a list.
    async fn list(
        &self,
        via: usize,
        scope: &Scope,
        query: JobQuery,
        about: Option<(JobId, JobId)>,
    ) -> Result<(), String> {
        let prefix = |id: JobId| Some(id.to_string()[..8].to_owned());
        let mut model =
            JobQuery { id_prefix: about.and_then(|(id, _)| prefix(id)), ..query.clone() };
        let mut subject = JobQuery { id_prefix: about.and_then(|(_, id)| prefix(id)), ..query };
        loop {
            let pages = (
                self.model.list(scope, &model).await,
                self.handles[via].list(scope, &subject).await,
            );
            let next = |page: &Result<outlast_core::JobPage, StoreError>| {
                page.as_ref().ok().and_then(|page| page.next)
            };
            (model.after, subject.after) = (next(&pages.0), next(&pages.1));
            self.same("list", pages, Ids::page)?;
            if model.after.is_none() {
                return Ok(());
            }
        }
    }

    async fn reopen(&mut self, via: usize) -> Result<(), String> {
        for number in 0..WORKERS {
            if self.workers[number].handle == via {
                self.model
                    .deregister_worker(&self.name(number))
                    .await
                    .map_err(|error| error.to_string())?;
                self.workers[number].life += 1;
                self.workers[number].alive = false;
            }
        }
        let gone = self.handles.remove(via);
        self.subject.crash(gone).await;
        let opened = self.subject.open(self.clock.clone(), self.dir.path()).await;
        self.handles.insert(via, opened);
        Ok(())
    }

    /// Compares two claims and records their leases.
    fn claimed(
        &mut self,
        what: &str,
        worker: usize,
        (model, subject): (
            Result<Option<ClaimedJob>, StoreError>,
            Result<Option<ClaimedJob>, StoreError>,
        ),
    ) -> Result<(), String> {
        self.workers[worker].alive = true;
        if let (Ok(Some(model)), Ok(Some(subject))) = (&model, &subject) {
            self.leases.push((model.lease.clone(), subject.lease.clone()));
            self.latest.insert(model.job.id, model.lease.clone());
        }
        self.same(what, (model, subject), Ids::claimed).map(drop)
    }

    /// Returns the lease that was granted `back` leases ago.
    fn lease(&self, back: usize) -> Option<(Lease, Lease)> {
        let count = self.leases.len();
        (count > 0).then(|| self.leases[count - 1 - back % count].clone())
    }

    /// Returns the job that was inserted `back` jobs ago.
    fn job(&self, back: usize) -> Option<(JobId, JobId)> {
        let count = self.ids.all().len();
        (count > 0).then(|| {
            let number = count - 1 - back % count;
            (self.model_ids.all()[number], self.ids.all()[number])
        })
    }

    fn name(&self, worker: usize) -> WorkerId {
        WorkerId::new(format!("w{worker}-{}", self.workers[worker].life))
    }

    /// Compares two answers with their ids normalised, and returns the common answer if it is not a refusal.
    fn same<T, U: PartialEq + Debug>(
        &self,
        what: &str,
        (model, subject): (Result<T, StoreError>, Result<T, StoreError>),
        plain: impl Fn(&Ids, T) -> U,
    ) -> Result<Option<U>, String> {
        let model = match model {
            Ok(answer) => Ok(plain(&self.model_ids, answer)),
            Err(error) => Err(self.model_ids.refused(error)),
        };
        let subject = match subject {
            Ok(answer) => Ok(plain(&self.ids, answer)),
            Err(error) => Err(self.ids.refused(error)),
        };
        if model != subject {
            return Err(format!("{what}\n  model: {model:?}\n  store: {subject:?}"));
        }
        Ok(subject.ok())
    }
}

fn as_it_is<T>(_: &Ids, answer: T) -> T {
    answer
}

fn scope_of(who: ScopeSpec) -> Scope {
    match who {
        ScopeSpec::Owner(number) => Scope::Owner(owner(number)),
        ScopeSpec::Operator => Scope::Operator,
    }
}

fn moved(now: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_millis(now.as_millis() + seconds * 1000)
}

/// A folder in memory if there is one, because disk latency proves nothing here.
fn home() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}
