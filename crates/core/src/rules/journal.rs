//! The journal of a run: the steps that a worker may begin, end and record. Each write presents the lease of the job
//! and draws no change number: progress is a change, a step is not.

use std::borrow::Cow;

use super::room::has_room;
use super::write::check_lease;
use crate::{
    Fence, Job, JobState, JournalStep, Lease, NanoUsd, NewStep, Page, Record, RemoteStop, Resend,
    ResolveOutcome, StepDecision, StepEnd, StepResult, StepStart, StepState, StoreError, Timestamp,
};

/// The maximum size of a step's output in bytes.
pub const MAX_STEP_OUTPUT: usize = 256 * 1024;
/// The maximum size of a page's text in bytes.
pub const MAX_PAGE_TEXT: usize = 256 * 1024;
/// The maximum number of steps in one run.
pub const MAX_STEPS: u64 = 4_000;
/// The maximum number of bytes of one job, with its steps and pages.
pub const MAX_RUN_BYTES: u64 = 64 * 1024 * 1024;

/// The number of bytes that a step or a page counts for in addition to its text.
pub const JOURNAL_ROW_BYTES: u64 = 128;

/// The facts that decide whether a run may record more. A store reads them in the transaction of the write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalUsage {
    /// The number of recorded steps of the run.
    pub steps: u64,
    /// The number of bytes that the owner's jobs take.
    pub owner_bytes: u64,
}

/// A step as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredStep {
    pub step: JournalStep,
    /// Its output, or the reason of its failure; `None` while it is open.
    pub output: Option<String>,
}

/// Decides whether a worker may send the request of a step. Returns the answer and the row to save, if it changes.
pub fn begin_step(
    record: &mut Record,
    lease: &Lease,
    found: Option<StoredStep>,
    new: &NewStep,
    usage: JournalUsage,
    now: Timestamp,
) -> Result<(StepStart, Option<JournalStep>), StoreError> {
    check_lease(record, lease)?;
    let Some(StoredStep { step, output }) = found else {
        let bytes = (new.key.len() + new.kind.len()) as u64 + JOURNAL_ROW_BYTES;
        if usage.steps >= MAX_STEPS {
            return Err(StoreError::TooManyBytes);
        }
        take_room(record, bytes, usage.owner_bytes, new.max_bytes)?;
        return Ok((StepStart::New, Some(first_send(new, lease, now))));
    };
    if step.input_digest != new.input_digest {
        return Ok((StepStart::Changed, None));
    }
    Ok(match (step.state, new.resend) {
        (StepState::Done, _) => (StepStart::Done(output.unwrap_or_default()), None),
        (StepState::Failed, _) => (StepStart::Failed(output.unwrap_or_default()), None),
        (StepState::Sending, Resend::Refuse) if step.fence != Fence::NONE => {
            (StepStart::Open { fence: step.fence }, None)
        }
        // Without a fence: the owner has consented to send it again (`release_run`).
        (StepState::Sending, Resend::Refuse | Resend::Allow) => {
            let resent = step.resent.saturating_add(1);
            (StepStart::New, Some(JournalStep { resent, ..first_send(new, lease, now) }))
        }
    })
}

fn first_send(new: &NewStep, lease: &Lease, now: Timestamp) -> JournalStep {
    JournalStep {
        key: new.key.clone(),
        kind: new.kind.clone(),
        input_digest: new.input_digest,
        state: StepState::Sending,
        fence: lease.fence,
        bound: new.bound,
        spent: NanoUsd(0),
        tokens_in: 0,
        tokens_out: 0,
        resent: 0,
        started_at: now,
        ended_at: None,
    }
}

/// Ends a step that this claim of the job has begun. Returns the row and the output to save; `None` if the step has
/// ended before, because its first end is kept.
///
/// The owner's limit does not apply: the answer may have been paid for.
pub fn end_step(
    record: &mut Record,
    lease: &Lease,
    found: Option<JournalStep>,
    end: &StepEnd,
    now: Timestamp,
) -> Result<Option<StoredStep>, StoreError> {
    check_lease(record, lease)?;
    let step = found.ok_or(StoreError::NotFound)?;
    match step.state {
        StepState::Sending if step.fence == lease.fence => {}
        // It was sent by an earlier claim and not begun again by this one.
        StepState::Sending => return Err(StoreError::NotFound),
        StepState::Done | StepState::Failed => return Ok(None),
    }
    let (state, output) = match &end.result {
        StepResult::Done(output) => (StepState::Done, output),
        StepResult::Failed(reason) => (StepState::Failed, reason),
    };
    let output = storable(output, MAX_STEP_OUTPUT).into_owned();
    record.bytes += output.len() as u64;
    let StepEnd { result: _, spent, tokens_in, tokens_out } = *end;
    let ended_at = Some(now);
    let step = JournalStep { state, spent, tokens_in, tokens_out, ended_at, ..step };
    Ok(Some(StoredStep { step, output: Some(output) }))
}

/// Applies the decision of a person to a step whose end is not known. Returns the row and the output to save, if it
/// changes. It presents no lease: no worker may have the job.
pub fn resolve_step(
    job: &Job,
    found: Option<JournalStep>,
    decision: StepDecision,
    now: Timestamp,
) -> (ResolveOutcome, Option<StoredStep>) {
    if matches!(job.state, JobState::Running { .. }) {
        return (ResolveOutcome::JobRuns, None);
    }
    let Some(step) = found.filter(|step| step.state == StepState::Sending) else {
        return (ResolveOutcome::NotOpen, None);
    };
    let resolved = match decision {
        StepDecision::Done => StoredStep {
            step: JournalStep { state: StepState::Done, ended_at: Some(now), ..step },
            output: Some(String::new()),
        },
        // Without a fence it is begun once more: see `begin_step`.
        StepDecision::Rerun => {
            StoredStep { step: JournalStep { fence: Fence::NONE, ..step }, output: None }
        }
    };
    (ResolveOutcome::Recorded, Some(resolved))
}

/// Decides whether a run may keep a page. Returns the page as it is stored; `None` if the run has it already.
pub fn save_page(
    record: &mut Record,
    lease: &Lease,
    page: &Page,
    is_known: bool,
    (owner_bytes, max_bytes): (u64, u64),
) -> Result<Option<Page>, StoreError> {
    check_lease(record, lease)?;
    if is_known {
        return Ok(None);
    }
    let text = storable(&page.text, MAX_PAGE_TEXT);
    let is_cut = text.len() < page.text.replace('\0', "").len();
    let line = |text: &str| storable(text, MAX_PAGE_TEXT).into_owned();
    let page = Page {
        url: line(&page.url),
        final_url: line(&page.final_url),
        media_type: page.media_type.as_deref().map(line),
        truncated: page.truncated || is_cut,
        text: text.into_owned(),
        ..*page
    };
    take_room(record, page_bytes(&page), owner_bytes, max_bytes)?;
    Ok(Some(page))
}

/// Returns whether the journal of a job is removed by its age: a run of this provider that ended before this moment, with
/// nothing left to stop.
pub fn is_forgotten(job: &Job, provider: &str, ended_before: Timestamp) -> bool {
    let is_stopping =
        matches!(&job.state, JobState::Cancelled { remote, .. } if *remote == RemoteStop::Owed);
    job.new.profile.provider() == provider
        && job.ended_at().is_some_and(|end| end < ended_before)
        && !is_stopping
}

/// Returns the number of bytes that a step counts for.
pub fn step_bytes(StoredStep { step, output }: &StoredStep) -> u64 {
    let output = output.as_ref().map_or(0, String::len);
    (step.key.len() + step.kind.len() + output) as u64 + JOURNAL_ROW_BYTES
}

/// Returns the number of bytes that a page counts for in each run that has read it.
pub fn page_bytes(page: &Page) -> u64 {
    (page.text.len() + page.url.len() + page.final_url.len()) as u64 + JOURNAL_ROW_BYTES
}

/// Adds bytes to the job, if its owner and its run have room for them.
fn take_room(
    record: &mut Record,
    bytes: u64,
    owner_bytes: u64,
    max_bytes: u64,
) -> Result<(), StoreError> {
    let of_run = record.bytes.saturating_add(bytes);
    if of_run > MAX_RUN_BYTES || !has_room(owner_bytes, bytes, max_bytes) {
        return Err(StoreError::TooManyBytes);
    }
    record.bytes = of_run;
    Ok(())
}

/// Returns the beginning of the text, at most `max` bytes, without U+0000, which one of the databases refuses.
fn storable(text: &str, max: usize) -> Cow<'_, str> {
    let text =
        if text.contains('\0') { text.replace('\0', "").into() } else { Cow::Borrowed(text) };
    if text.len() <= max {
        return text;
    }
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..text.floor_char_boundary(max)]),
        Cow::Owned(mut text) => {
            text.truncate(text.floor_char_boundary(max));
            Cow::Owned(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::{NOW, running};
    use crate::{Checkpoint, WorkerId};

    fn new(resend: Resend) -> NewStep {
        NewStep {
            key: "read:1".to_owned(),
            kind: "read".to_owned(),
            input_digest: [1; 32],
            bound: NanoUsd(5),
            resend,
            max_bytes: 1_000,
        }
    }

    fn stored(state: StepState, fence: u64) -> StoredStep {
        let (_, lease) = running(Checkpoint::NotBegun);
        let sent = first_send(&new(Resend::Refuse), &lease, NOW);
        let output = (state != StepState::Sending).then(|| "out".to_owned());
        StoredStep { step: JournalStep { state, fence: Fence(fence), ..sent }, output }
    }

    /// K2: a finished step is never sent again, and an open one only if that is allowed.
    #[test]
    fn k2_the_recorded_state_of_a_step_decides_whether_it_is_sent() {
        use Resend::{Allow, Refuse};
        use StepState::{Done, Failed, Sending};
        let out = || "out".to_owned();
        let cases = [
            (None, Refuse, StepStart::New, Some(0)),
            (None, Allow, StepStart::New, Some(0)),
            (Some(Done), Refuse, StepStart::Done(out()), None),
            (Some(Done), Allow, StepStart::Done(out()), None),
            (Some(Failed), Refuse, StepStart::Failed(out()), None),
            (Some(Failed), Allow, StepStart::Failed(out()), None),
            (Some(Sending), Refuse, StepStart::Open { fence: Fence(9) }, None),
            (Some(Sending), Allow, StepStart::New, Some(1)),
        ];
        for (state, resend, start, resent) in cases {
            let (mut record, lease) = running(Checkpoint::NotBegun);
            let found = state.map(|state| stored(state, 9));
            let usage = JournalUsage::default();
            let (answer, saved) =
                begin_step(&mut record, &lease, found, &new(resend), usage, NOW).unwrap();
            assert_eq!(answer, start, "{state:?} {resend:?}");
            assert_eq!(saved.as_ref().map(|step| step.resent), resent, "{state:?} {resend:?}");
            assert!(saved.is_none_or(|step| step.fence == lease.fence));
        }
        let (mut record, lease) = running(Checkpoint::NotBegun);
        let other = NewStep { input_digest: [2; 32], ..new(Allow) };
        let found = Some(stored(Done, 1));
        let answer = begin_step(&mut record, &lease, found, &other, JournalUsage::default(), NOW);
        assert_eq!(answer.unwrap(), (StepStart::Changed, None));
    }

    #[test]
    fn a_run_without_room_begins_no_step_but_records_every_answer() {
        let full = [
            (JournalUsage { steps: MAX_STEPS, owner_bytes: 0 }, 0),
            (JournalUsage { steps: 0, owner_bytes: 900 }, 0),
            (JournalUsage::default(), MAX_RUN_BYTES),
        ];
        for (usage, bytes) in full {
            let (mut record, lease) = running(Checkpoint::NotBegun);
            record.bytes = bytes;
            let refused = begin_step(&mut record, &lease, None, &new(Resend::Refuse), usage, NOW);
            assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{usage:?}");
            assert_eq!(record.bytes, bytes, "{usage:?}");
            let end = StepEnd::free(StepResult::Done("four".to_owned()));
            let open = stored(StepState::Sending, 1).step;
            end_step(&mut record, &lease, Some(open), &end, NOW).unwrap().unwrap();
            assert_eq!(record.bytes, bytes + 4);
        }
    }

    #[test]
    fn only_the_claim_that_sent_a_step_ends_it_and_only_once() {
        let (mut record, lease) = running(Checkpoint::NotBegun);
        let end = StepEnd::free(StepResult::Failed("no\0 luck".to_owned()));
        let mut ended = |found| end_step(&mut record, &lease, found, &end, NOW);
        let by_other = stored(StepState::Sending, 9).step;
        assert!(matches!(ended(None), Err(StoreError::NotFound)));
        assert!(matches!(ended(Some(by_other)), Err(StoreError::NotFound)));
        assert_eq!(ended(Some(stored(StepState::Done, 1).step)).unwrap(), None);
        let saved = ended(Some(stored(StepState::Sending, 1).step)).unwrap().unwrap();
        assert_eq!(saved.step.state, StepState::Failed);
        assert_eq!(saved.output.as_deref(), Some("no luck"));
        let other = Lease { worker: WorkerId::new("x"), ..lease };
        let open = Some(stored(StepState::Sending, 1).step);
        let stale = end_step(&mut record, &other, open, &end, NOW);
        assert!(matches!(stale, Err(StoreError::LeaseLost)));
    }

    /// K12: a decision about a step is recorded only while no worker has the job, and only if its end is not known.
    #[test]
    fn k12_only_an_interrupted_step_of_a_job_at_rest_is_resolved() {
        use ResolveOutcome::{JobRuns, NotOpen, Recorded};
        use StepState::{Done, Failed, Sending};
        let resting = JobState::Queued { run_at: NOW };
        let running_since = JobState::Running { since: NOW };
        let failed = JobState::Failed { at: NOW };
        let cases = [
            (&resting, Some(Sending), Recorded),
            (&failed, Some(Sending), Recorded),
            (&running_since, Some(Sending), JobRuns),
            (&failed, Some(Done), NotOpen),
            (&failed, Some(Failed), NotOpen),
            (&failed, None, NotOpen),
        ];
        for (state, step, expected) in cases {
            let mut job = running(Checkpoint::NotBegun).0.job;
            job.state = state.clone();
            let found = || step.map(|state| stored(state, 9).step);
            let (outcome, done) = resolve_step(&job, found(), StepDecision::Done, NOW);
            assert_eq!(outcome, expected, "{state:?} {step:?}");
            let (outcome, rerun) = resolve_step(&job, found(), StepDecision::Rerun, NOW);
            assert_eq!(outcome, expected, "{state:?} {step:?}");
            if let (Some(done), Some(rerun)) = (done, rerun) {
                assert_eq!((done.step.state, done.output.as_deref()), (Done, Some("")));
                assert_eq!((rerun.step.state, rerun.step.fence), (Sending, Fence::NONE));
                assert_eq!(rerun.output, None);
            } else {
                assert_ne!(expected, Recorded);
            }
        }
    }

    #[test]
    fn a_page_is_cut_at_a_character_and_counts_once_in_its_run() {
        let (mut record, lease) = running(Checkpoint::NotBegun);
        record.bytes = 0;
        let page = Page {
            digest: [3; 32],
            url: "https://a.example/\0".to_owned(),
            final_url: "https://a.example/".to_owned(),
            status: 200,
            media_type: None,
            fetched_at: NOW,
            truncated: false,
            text: format!("\0{}", "\u{e9}".repeat(MAX_PAGE_TEXT)),
        };
        let room = (0, u64::MAX);
        let kept = save_page(&mut record, &lease, &page, false, room).unwrap().unwrap();
        assert_eq!((kept.text.len(), kept.truncated), (MAX_PAGE_TEXT, true));
        assert_eq!(kept.url, "https://a.example/");
        assert_eq!(record.bytes, page_bytes(&kept));
        assert_eq!(save_page(&mut record, &lease, &page, true, room).unwrap(), None);
        assert_eq!(record.bytes, page_bytes(&kept));
        let short = Page { text: "a\0b".to_owned(), ..page.clone() };
        let kept = save_page(&mut record, &lease, &short, false, room).unwrap().unwrap();
        assert!(!kept.truncated, "nothing is missing but U+0000");
        let full = save_page(&mut record, &lease, &page, false, (10, 10));
        assert!(matches!(full, Err(StoreError::TooManyBytes)));
    }
}
