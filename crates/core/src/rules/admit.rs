//! The insert of a job. A call that repeats an earlier one attaches to the earlier job; any other call adds a job if its
//! conversation is idle and its owner has not reached a limit. Stores read the facts and write the decision.

use super::cap::{allowance_of_resumed, may_spend};
use super::charge::reserve;
use super::identity::{Earlier, EarlierCall, IdentityRecord, earlier};
use super::key::KeyRecord;
use super::room::{has_room, request_bytes};
use super::takeover::RunLeft;
use crate::{
    Checkpoint, CountedSpend, EndNotices, Fence, Insert, Job, JobId, JobState, LedgerRow, NanoUsd,
    NewJob, Questions, Record, RemoteRun, Resend, Rev, StoreError, Takeover, Timestamp,
};

/// The facts about an owner that decide whether a job is added. A store reads them in the transaction of the insert.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnerUsage {
    /// True if the new job is about another one ([`NewJob::subject`]) and the owner has no such job.
    pub lacks_subject: bool,
    /// The unfinished turn of the new job's conversation, if there is one.
    pub busy: Option<JobId>,
    /// The number of the conversation's latest turn; zero if it has none.
    pub last_turn: u32,
    /// The number of the owner's unfinished jobs.
    pub unfinished: u64,
    /// The number of bytes that the owner's jobs take.
    pub bytes: u64,
    /// The amount that counts toward the owner's limit for today. Only read if [`counts_toward_day`].
    pub spent_today: NanoUsd,
    /// The run that the new job takes over ([`Insert::takeover`]), if it is left.
    pub run_left: Option<RunLeft>,
}

/// The rows of an insert that is accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmittedRows {
    /// The queued job. The store assigns its rev when it saves it.
    pub record: Record,
    pub charge: FirstCharge,
    /// The text of the caller's key, and the key as it is stored.
    pub key: Option<(String, KeyRecord)>,
    pub identity: Option<IdentityRecord>,
}

/// The effect of an insert on the ledger.
#[derive(Clone, Debug, PartialEq)]
pub enum FirstCharge {
    /// The job is free.
    None,
    /// The job begins a paid run.
    Reserve(LedgerRow),
    /// The job resumes a run. The row of that run, if it has one, moves to the job.
    Move(RemoteRun),
    /// The job continues a paid run from its journal. The row replaces the latest one of the job that had the run.
    Replace(LedgerRow),
}

/// Returns the earlier call if the insert attaches to it; fails if the caller's key belongs to another request. Otherwise
/// the insert adds a job, which resumes the run that the earlier call left.
pub fn attach<N>(
    insert: &mut Insert,
    found: EarlierCall<N>,
    now: Timestamp,
) -> Result<Option<EarlierCall<N>>, StoreError> {
    let Some(key) = &insert.key else { return Ok(None) };
    match earlier(key, &found.key, &found.job, &insert.job, now) {
        Earlier::Attach => Ok(Some(found)),
        Earlier::Conflict => Err(StoreError::KeyConflict(found.job.id)),
        Earlier::MakeNew(Some(_)) if found.job.new.runs_from_journal() => {
            let takeover = Takeover { job: found.job.id, open_steps: Resend::Refuse };
            insert.takeover.get_or_insert(takeover);
            Ok(None)
        }
        Earlier::MakeNew(run) => {
            insert.resumed_run = insert.resumed_run.take().or(run);
            Ok(None)
        }
    }
}

/// Returns whether the owner's limit for a day decides about the insert.
pub fn counts_toward_day(insert: &Insert) -> bool {
    let has_limit = |terms: &crate::SpendTerms| terms.limits.per_day.is_some();
    insert.resumed_run.is_none()
        && insert.reservation.as_ref().is_some_and(|reservation| has_limit(&reservation.terms))
}

/// Decides whether an insert that attaches to no earlier job adds one.
pub fn admit(
    insert: Insert,
    usage: &OwnerUsage,
    id: JobId,
    notice: EndNotices,
    now: Timestamp,
) -> Result<AdmittedRows, StoreError> {
    let Insert {
        job: new,
        key,
        max_unfinished,
        max_bytes,
        resumed_run,
        takeover: _,
        reservation,
        initial_worker: _,
    } = insert;
    if usage.lacks_subject {
        return Err(StoreError::NotFound);
    }
    if let Some(busy) = usage.busy {
        return Err(StoreError::ConversationBusy(busy));
    }
    if usage.unfinished >= u64::from(max_unfinished) {
        return Err(StoreError::TooManyJobs);
    }
    let bytes = request_bytes(&new);
    if !has_room(usage.bytes, bytes, max_bytes) {
        return Err(StoreError::TooManyBytes);
    }
    let resumed = resumed_run.clone();
    let left = usage.run_left.as_ref();
    let checkpoint = match (left, resumed_run) {
        (Some(left), _) => left.checkpoint.clone(),
        (None, Some(run)) => Checkpoint::Running(run),
        (None, None) => Checkpoint::NotBegun,
    };
    let bytes = bytes + left.map_or(0, |left| left.bytes);
    let mut job = accept(new, checkpoint, id, usage.last_turn + 1, now);
    let charge = match (left, resumed, &reservation) {
        (Some(_) | None, None, None) | (Some(_), Some(_), None) => FirstCharge::None,
        // Nothing is decided, because nothing is bought.
        (None, Some(run), reservation) => {
            job.allowance =
                reservation.as_ref().map(|reservation| allowance_of_resumed(&reservation.terms));
            FirstCharge::Move(run)
        }
        // A run that is continued here goes on to buy.
        (left, _, Some(reservation)) => {
            let before = left.map_or(0, |left| left.counts_on(now));
            let day = NanoUsd(usage.spent_today.0.saturating_sub(before));
            let counted = CountedSpend { day, ..CountedSpend::default() };
            let allowance =
                may_spend(&reservation.terms, counted, now).map_err(StoreError::BudgetExceeded)?;
            let row = reserve(reservation, &allowance, id, &job.new.owner, now);
            job.allowance = Some(allowance);
            match left {
                Some(_) => FirstCharge::Replace(row),
                None => FirstCharge::Reserve(row),
            }
        }
    };
    let identity = key.as_ref().and_then(|key| key.identity.as_ref());
    let identity = identity.map(|identity| IdentityRecord::new(identity, &job.new, now));
    let key = key.map(|key| {
        let (input_hash, life) = (key.input_hash, key.life);
        (key.text, KeyRecord { input_hash, made_at: now, life, answered_at: None })
    });
    Ok(AdmittedRows { record: Record { job, holder: None, bytes, notice }, charge, key, identity })
}

/// Creates a job: queued, due at once, never claimed.
pub(super) fn accept(
    new: NewJob,
    checkpoint: Checkpoint,
    id: JobId,
    turn: u32,
    now: Timestamp,
) -> Job {
    Job {
        id,
        new,
        turn,
        state: JobState::Queued { run_at: now },
        failures: Vec::new(),
        checkpoint,
        allowance: None,
        progress: None,
        partial: None,
        questions: Questions::default(),
        fence: Fence::NONE,
        created_at: now,
        updated_at: now,
        rev: Rev::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::{NOW, queued, remote};
    use crate::{BudgetLimit, BudgetRefusal, Key, Reservation, SpendLimits, SpendTerms};

    fn id() -> JobId {
        JobId::new(uuid::Uuid::from_u128(9))
    }

    fn insert(reservation: Option<Reservation>) -> Insert {
        Insert {
            job: queued().job.new,
            key: Some(Key::from_caller("k", [1; 32])),
            max_unfinished: 2,
            max_bytes: 100,
            resumed_run: None,
            takeover: None,
            reservation,
            initial_worker: None,
        }
    }

    fn limited(per_day: Option<NanoUsd>) -> Reservation {
        let limits = SpendLimits { per_job: None, per_day };
        let terms = SpendTerms { typical: Some(NanoUsd(5)), limits, ..SpendTerms::default() };
        Reservation { provider: "agent".to_owned(), model: None, terms }
    }

    /// G6, C6: of several refusals, the caller gets the one that waiting for a job can lift.
    #[test]
    fn an_insert_is_refused_by_its_conversation_then_the_quotas_then_the_budget() {
        let busy = OwnerUsage {
            lacks_subject: false,
            busy: Some(id()),
            last_turn: 1,
            unfinished: 2,
            bytes: 100,
            spent_today: NanoUsd(6),
            run_left: None,
        };
        let many = OwnerUsage { busy: None, ..busy.clone() };
        let full = OwnerUsage { unfinished: 1, ..many.clone() };
        let spent = OwnerUsage { bytes: 96, ..full.clone() };
        let admitted = OwnerUsage { spent_today: NanoUsd(5), ..spent.clone() };
        let refused = |usage: &OwnerUsage| {
            let insert = insert(Some(limited(Some(NanoUsd(10)))));
            assert!(counts_toward_day(&insert));
            admit(insert, usage, id(), EndNotices::Off, NOW).err()
        };
        assert!(matches!(refused(&busy), Some(StoreError::ConversationBusy(busy)) if busy == id()));
        assert!(matches!(refused(&many), Some(StoreError::TooManyJobs)));
        assert!(matches!(refused(&full), Some(StoreError::TooManyBytes)));
        let budget = refused(&spent);
        let Some(StoreError::BudgetExceeded(BudgetRefusal { limit, .. })) = budget else {
            panic!("{budget:?}")
        };
        assert_eq!(limit, BudgetLimit::Day);
        assert!(refused(&admitted).is_none());
    }

    /// G6: a resumed run is bought only once, so neither a limit nor a second reservation applies to it.
    #[test]
    fn g6_a_resumed_run_moves_its_row_and_is_not_limited() {
        let resumed =
            Insert { resumed_run: Some(remote()), ..insert(Some(limited(Some(NanoUsd(0))))) };
        assert!(!counts_toward_day(&resumed));
        let usage = OwnerUsage { last_turn: 3, ..OwnerUsage::default() };
        let admitted = admit(resumed, &usage, id(), EndNotices::Off, NOW).unwrap();
        assert_eq!(admitted.charge, FirstCharge::Move(remote()));
        assert!(admitted.record.job.allowance.is_some());
        assert_eq!(admitted.record.job.turn, 4);
        assert_eq!(admitted.record.job.checkpoint, Checkpoint::Running(remote()));
        let free = admit(insert(None), &usage, id(), EndNotices::Off, NOW).unwrap();
        assert_eq!((free.charge, free.record.job.allowance), (FirstCharge::None, None));
        let paid = admit(insert(Some(limited(None))), &usage, id(), EndNotices::Off, NOW).unwrap();
        let FirstCharge::Reserve(row) = paid.charge else { panic!("{:?}", paid.charge) };
        assert_eq!((row.job, row.reserved), (id(), Some(NanoUsd(5))));
    }
}
