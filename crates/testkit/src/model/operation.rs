//! The operations of a store, with few enough names to make collisions likely. Numbers that select a job or a
//! lease are taken modulo their count, so that any shortened list is still valid.

use std::time::Duration;

use outlast_core::{
    Body, CallIdentity, CallMode, Checkpoint, Code, ConversationId, Cost, Failure, Key, KeyLife,
    NanoUsd, NewJob, NewStep, Output, OwnerId, Page, Profile, RemoteStop, Resend, Settlement,
    StateKind, StepEnd, StepResult, Usage, Visibility,
};
use proptest::bool::weighted;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::questions::{QuestionSpec, question};
use crate::clock::START;
use crate::store_suite::{a_failure, a_job, a_run};

/// One operation, and the handle that performs it.
#[derive(Clone, Debug)]
pub(super) struct Op {
    /// The index of the handle; an operation of a worker uses the worker's handle.
    pub(super) via: usize,
    pub(super) what: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Insert {
        job: JobSpec,
        key: Option<KeySpec>,
        max_unfinished: u32,
        max_bytes: u64,
        takes_up: bool,
        /// The job whose run it takes over, and whether its open steps are begun once more.
        takes_over: Option<(usize, bool)>,
        /// The job that it is about; only a free job is about another one.
        about: Option<usize>,
        /// The daily limit in cents if the job costs one cent; `None` for a free job.
        cents_per_day: Option<Option<u64>>,
        /// The worker that runs a held call from the start, and the duration of its lease in seconds.
        carrier: Option<(usize, u64)>,
    },
    Claim {
        worker: usize,
        profiles: Vec<usize>,
        seconds: u64,
    },
    Take {
        worker: usize,
        profiles: Vec<usize>,
        job: usize,
        seconds: u64,
    },
    Renew {
        leases: Vec<usize>,
        seconds: u64,
    },
    Checkpoint {
        lease: usize,
        at: CheckpointSpec,
    },
    Note {
        lease: usize,
        percent: Option<u8>,
    },
    BeginStep {
        lease: usize,
        step: StepSpec,
    },
    EndStep {
        lease: usize,
        key: usize,
        is_done: bool,
    },
    ResolveStep {
        scope: ScopeSpec,
        job: usize,
        key: usize,
        is_done: bool,
    },
    SavePage {
        lease: usize,
        digest: u8,
        max_bytes: u64,
    },
    Ask {
        lease: usize,
        question: QuestionSpec,
    },
    CloseQuestion {
        lease: usize,
        key: usize,
    },
    Answer {
        scope: ScopeSpec,
        job: usize,
        id: Option<usize>,
        is_choice: bool,
    },
    Settle {
        lease: usize,
        how: SettlementSpec,
    },
    Cancel {
        scope: ScopeSpec,
        job: usize,
    },
    RescueProven,
    RescueExpired,
    Owe {
        job: usize,
    },
    Stopped {
        job: usize,
        outcome: RemoteStop,
    },
    Answered {
        job: usize,
    },
    Dismiss {
        worker: usize,
    },
    PruneExpired {
        scope: ScopeSpec,
    },
    PruneEnded {
        scope: ScopeSpec,
        seconds_ago: i64,
    },
    ForgetRuns {
        profile: usize,
        seconds_ago: i64,
    },
    PruneConversation {
        scope: ScopeSpec,
        conversation: usize,
    },
    List {
        scope: ScopeSpec,
        states: Vec<StateKind>,
        search: bool,
        id_of: Option<usize>,
        limit: u32,
    },
    MoveClock {
        seconds: i64,
    },
    /// Drops the handle and its workers as a crash would, and opens a new one.
    Reopen,
}

/// The distinguishing features of a job.
#[derive(Clone, Debug)]
pub(super) struct JobSpec {
    pub(super) owner: usize,
    pub(super) conversation: Option<usize>,
    pub(super) profile: usize,
    pub(super) priority: i16,
    pub(super) visibility: Visibility,
    pub(super) keep_seconds: Option<u64>,
}

/// The distinguishing features of a key.
#[derive(Clone, Debug)]
pub(super) struct KeySpec {
    pub(super) text: usize,
    pub(super) input: u8,
    pub(super) kind: KeyKind,
    pub(super) seconds: u64,
    /// The window of a repeating key after a call was answered.
    pub(super) answered_seconds: u64,
    /// The identity of the call; `None` for a call of the previous version, or one without an identity.
    pub(super) identity: Option<IdentitySpec>,
}

/// The distinguishing features of a call's identity.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdentitySpec {
    pub(super) question: u8,
    /// The profile whose provider the call names.
    pub(super) named: Option<usize>,
    pub(super) model: Option<bool>,
    pub(super) fresh: bool,
}

/// The distinguishing features of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepSpec {
    key: usize,
    input: u8,
    may_resend: bool,
    max_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum KeyKind {
    For,
    UntilAnswered,
    Replays,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ScopeSpec {
    Owner(usize),
    Operator,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum CheckpointSpec {
    NotBegun,
    Beginning,
    Running,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum SettlementSpec {
    Succeed,
    Retry { seconds: u64, at: CheckpointSpec },
    Fail(Code),
    Release,
    Wait,
}

pub(super) const OWNERS: usize = 3;
pub(super) const PROFILES: usize = 2;
pub(super) const WORKERS: usize = 3;
pub(super) const CONVERSATIONS: usize = 2;
pub(super) const PAGES: u8 = 2;

/// A random list of operations.
pub(super) fn sequences() -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 1..30)
}

fn op() -> impl Strategy<Value = Op> {
    (0..2_usize, what()).prop_map(|(via, what)| Op { via, what })
}

/// Weighted so that creating, running and finishing jobs are the most frequent.
fn what() -> impl Strategy<Value = Action> {
    let worker = || 0..WORKERS;
    let few = || 0..4_usize;
    prop_oneof![
        8 => (
            job(),
            option::of(key()),
            1..6_u32,
            bytes(),
            weighted(0.2),
            option::weighted(0.4, (few(), any::<bool>())),
            option::weighted(0.3, few()),
            option::of(option::of(0..5_u64)),
            option::of((worker(), seconds())),
        )
            .prop_map(|(job, key, max_unfinished, max_bytes, takes_up, takes_over, about, cents_per_day, carrier)| {
                Action::Insert {
                    job, key, max_unfinished, max_bytes, takes_up, takes_over, about, cents_per_day, carrier,
                }
            }),
        8 => (worker(), vec(0..PROFILES, 0..3), seconds())
            .prop_map(|(worker, profiles, seconds)| Action::Claim { worker, profiles, seconds }),
        3 => (worker(), vec(0..PROFILES, 0..3), few(), seconds())
            .prop_map(|(worker, profiles, job, seconds)| Action::Take { worker, profiles, job, seconds }),
        2 => (vec(few(), 0..3), seconds()).prop_map(|(leases, seconds)| Action::Renew { leases, seconds }),
        6 => (few(), at()).prop_map(|(lease, at)| Action::Checkpoint { lease, at }),
        2 => (few(), option::of(0..=100_u8)).prop_map(|(lease, percent)| Action::Note { lease, percent }),
        4 => (few(), step()).prop_map(|(lease, step)| Action::BeginStep { lease, step }),
        3 => (few(), 0..2_usize, weighted(0.8))
            .prop_map(|(lease, key, is_done)| Action::EndStep { lease, key, is_done }),
        2 => (who(), few(), 0..2_usize, any::<bool>())
            .prop_map(|(scope, job, key, is_done)| Action::ResolveStep { scope, job, key, is_done }),
        3 => (few(), 0..PAGES, bytes())
            .prop_map(|(lease, digest, max_bytes)| Action::SavePage { lease, digest, max_bytes }),
        4 => (few(), question()).prop_map(|(lease, question)| Action::Ask { lease, question }),
        1 => (few(), 0..2_usize).prop_map(|(lease, key)| Action::CloseQuestion { lease, key }),
        3 => (who(), few(), option::weighted(0.3, 1..3_usize), weighted(0.8))
            .prop_map(|(scope, job, id, is_choice)| Action::Answer { scope, job, id, is_choice }),
        6 => (few(), how()).prop_map(|(lease, how)| Action::Settle { lease, how }),
        5 => (who(), few()).prop_map(|(scope, job)| Action::Cancel { scope, job }),
        2 => Just(Action::RescueProven),
        2 => Just(Action::RescueExpired),
        1 => few().prop_map(|job| Action::Owe { job }),
        2 => (few(), outcome()).prop_map(|(job, outcome)| Action::Stopped { job, outcome }),
        2 => few().prop_map(|job| Action::Answered { job }),
        1 => worker().prop_map(|worker| Action::Dismiss { worker }),
        3 => who().prop_map(|scope| Action::PruneExpired { scope }),
        1 => (who(), -5..4000_i64).prop_map(|(scope, seconds_ago)| Action::PruneEnded { scope, seconds_ago }),
        1 => (0..2_usize, -5..120_i64)
            .prop_map(|(profile, seconds_ago)| Action::ForgetRuns { profile, seconds_ago }),
        1 => (who(), 0..CONVERSATIONS)
            .prop_map(|(scope, conversation)| Action::PruneConversation { scope, conversation }),
        1 => (who(), vec(state(), 0..3), any::<bool>(), option::of(few()), 0..4_u32).prop_map(
            |(scope, states, search, id_of, limit)| Action::List { scope, states, search, id_of, limit }
        ),
        4 => prop_oneof![3 => 0..120_i64, 2 => -3600..=3600_i64]
            .prop_map(|seconds| Action::MoveClock { seconds }),
        1 => Just(Action::Reopen),
    ]
}

fn job() -> impl Strategy<Value = JobSpec> {
    let keep_seconds = option::of(prop_oneof![Just(0), 1..60_u64, Just(1800)]);
    let visibility = prop_oneof![
        3 => Just(Visibility::Promised),
        1 => Just(Visibility::Task),
        2 => Just(Visibility::Unpromised),
    ];
    (0..OWNERS, option::of(0..CONVERSATIONS), 0..PROFILES, -1..=1_i16, visibility, keep_seconds)
        .prop_map(|(owner, conversation, profile, priority, visibility, keep_seconds)| JobSpec {
            owner,
            conversation,
            profile,
            priority,
            visibility,
            keep_seconds,
        })
}

fn key() -> impl Strategy<Value = KeySpec> {
    use KeyKind::{For, Replays, UntilAnswered};
    let kind = proptest::sample::select(vec![For, UntilAnswered, Replays]);
    (0..2_usize, 0..2_u8, kind, seconds(), seconds(), option::of(identity())).prop_map(
        |(text, input, kind, seconds, answered_seconds, identity)| KeySpec {
            text,
            input,
            kind,
            seconds,
            answered_seconds,
            identity,
        },
    )
}

fn step() -> impl Strategy<Value = StepSpec> {
    (0..2_usize, prop_oneof![4 => Just(0), 1 => Just(1_u8)], weighted(0.5), bytes()).prop_map(
        |(key, input, may_resend, max_bytes)| StepSpec { key, input, may_resend, max_bytes },
    )
}

fn identity() -> impl Strategy<Value = IdentitySpec> {
    (0..2_u8, option::of(0..PROFILES), option::of(any::<bool>()), weighted(0.25))
        .prop_map(|(question, named, model, fresh)| IdentitySpec { question, named, model, fresh })
}

/// Short durations, which the clock overtakes, and one that it rarely does.
pub(super) fn seconds() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..60_u64, Just(1800)]
}

/// Room for a few of the requests, which have about a hundred bytes each, and sometimes for all.
fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![1 => 0..1_000_u64, 3 => Just(u64::MAX)]
}

fn who() -> impl Strategy<Value = ScopeSpec> {
    prop_oneof![2 => Just(ScopeSpec::Operator), 1 => (0..OWNERS).prop_map(ScopeSpec::Owner)]
}

fn at() -> impl Strategy<Value = CheckpointSpec> {
    prop_oneof![1 => Just(CheckpointSpec::NotBegun), 2 => Just(CheckpointSpec::Beginning), 3 => Just(CheckpointSpec::Running)]
}

fn how() -> impl Strategy<Value = SettlementSpec> {
    prop_oneof![
        3 => Just(SettlementSpec::Succeed),
        2 => (seconds(), at()).prop_map(|(seconds, at)| SettlementSpec::Retry { seconds, at }),
        2 => code().prop_map(SettlementSpec::Fail),
        1 => Just(SettlementSpec::Release),
        2 => Just(SettlementSpec::Wait),
    ]
}

/// One code that is repeated after it was answered, and one that is not.
fn code() -> impl Strategy<Value = Code> {
    proptest::sample::select(vec![Code::ServiceUnavailable, Code::SubmitUnknown])
}

fn state() -> impl Strategy<Value = StateKind> {
    proptest::sample::select(StateKind::ALL.to_vec())
}

fn outcome() -> impl Strategy<Value = RemoteStop> {
    use RemoteStop::{Completed, Ended, GoesOn, MaybeBegun, NotNeeded, Owed, Told, Unsupported};
    let all = vec![NotNeeded, MaybeBegun, Owed, Told, Ended, Completed, GoesOn, Unsupported];
    proptest::sample::select(all)
}

impl JobSpec {
    pub(super) fn value(&self) -> NewJob {
        NewJob {
            owner: owner(self.owner),
            conversation: self.conversation.map(conversation),
            profile: profile(self.profile),
            title: format!("Question of {}", self.owner),
            priority: self.priority,
            visibility: self.visibility,
            keep: self.keep_seconds.map(Duration::from_secs),
            ..a_job()
        }
    }
}

impl KeySpec {
    pub(super) fn value(&self) -> Key {
        let span = Duration::from_secs(self.seconds);
        let life = match self.kind {
            KeyKind::For => KeyLife::For(span),
            KeyKind::UntilAnswered => KeyLife::UntilAnswered { after_end: span },
            KeyKind::Replays => KeyLife::Replays {
                unanswered: span,
                answered: Duration::from_secs(self.answered_seconds),
            },
        };
        let input_hash = [self.input; 32];
        let identity = self.identity.map(|identity| identity.value(span, self.answered_seconds));
        Key { text: format!("key-{}", self.text), input_hash, life, identity }
    }
}

impl StepSpec {
    pub(super) fn value(self) -> NewStep {
        NewStep {
            key: step_key(self.key),
            kind: "read".to_owned(),
            input_digest: [self.input; 32],
            bound: NanoUsd(3),
            resend: if self.may_resend { Resend::Allow } else { Resend::Refuse },
            max_bytes: self.max_bytes,
        }
    }
}

pub(super) fn step_key(number: usize) -> String {
    format!("read:{number}")
}

/// The end of a step.
pub(super) fn step_end(is_done: bool) -> StepEnd {
    let text = "what was read".to_owned();
    let result = if is_done { StepResult::Done(text) } else { StepResult::Failed(text) };
    StepEnd { spent: NanoUsd(2), tokens_in: 5, tokens_out: 7, ..StepEnd::free(result) }
}

/// The page with this digest.
pub(super) fn page(digest: u8) -> Page {
    Page {
        digest: [digest; 32],
        url: format!("https://a.example/{digest}"),
        final_url: "https://a.example/".to_owned(),
        status: 200,
        media_type: None,
        fetched_at: START,
        truncated: false,
        text: "x".repeat(300),
    }
}

impl IdentitySpec {
    fn value(self, unanswered: Duration, answered_seconds: u64) -> CallIdentity {
        CallIdentity {
            question: [self.question; 32],
            named_provider: self.named.map(|named| profile(named).provider().to_owned()),
            model: self.model.map(|model| if model { "one" } else { "two" }.to_owned()),
            mode: if self.fresh { CallMode::Fresh } else { CallMode::Attach },
            life: KeyLife::Replays { unanswered, answered: Duration::from_secs(answered_seconds) },
        }
    }
}

impl CheckpointSpec {
    pub(super) fn value(self) -> Checkpoint {
        match self {
            Self::NotBegun => Checkpoint::NotBegun,
            Self::Beginning => Checkpoint::Beginning { key: "k".to_owned() },
            Self::Running => Checkpoint::Running(a_run("run-1")),
        }
    }
}

impl SettlementSpec {
    pub(super) fn value(self) -> Settlement {
        match self {
            Self::Succeed => {
                // Short, because it is compared after every step; the store suite has a long one.
                let body = Body::report("because", Vec::new());
                let cost = Cost::Reported(NanoUsd(7_000_000));
                let output = Output { body, model: None, usage: Usage::default(), cost };
                Settlement::Succeed { output: output.into(), raw: Some(vec![0, 255].into()) }
            }
            Self::Retry { seconds, at } => Settlement::Retry {
                failure: a_failure("down"),
                wait: Duration::from_secs(seconds),
                checkpoint: at.value(),
            },
            Self::Fail(code) => {
                let failure = Failure { code, ..a_failure("no") };
                Settlement::Fail { failure, raw: None }
            }
            Self::Release => Settlement::Release,
            Self::Wait => Settlement::Wait,
        }
    }
}

pub(super) fn owner(number: usize) -> OwnerId {
    OwnerId::new(["alice", "bob", "carol"][number])
}

pub(super) fn profile(number: usize) -> Profile {
    Profile::new(["research", "researcher"][number])
}

pub(super) fn conversation(number: usize) -> ConversationId {
    ConversationId::new(["talk", "chat"][number])
}
