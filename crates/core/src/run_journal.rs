//! The journal as a run sees it: bound to the lease of its job.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Answer, ChangeWait, CloseReason, JobId, JournalStep, Lease, NewQuestion, NewStep, Page,
    Question, QuestionState, ResearchRecord, Scope, StepEnd, StepOutput, StepStart, Store,
    StoreError,
};

/// The longest wait for a change before the deadline of a question is looked at again.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The interval at which a store looks for the answers of other processes.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The journal of one attempt. A worker that has lost its lease records nothing more.
#[derive(Clone)]
pub struct RunJournal {
    store: Arc<dyn Store>,
    lease: Lease,
    max_bytes: u64,
}

impl RunJournal {
    /// Binds the journal of a store to a lease. `max_bytes` is the limit of the owner.
    pub fn new(store: Arc<dyn Store>, lease: Lease, max_bytes: u64) -> Self {
        Self { store, lease, max_bytes }
    }

    /// Returns the job that it belongs to.
    pub fn job(&self) -> JobId {
        self.lease.job
    }

    /// The maximum number of bytes that the owner may have stored, for [`NewStep::max_bytes`].
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Begins a step, or finds it; see [`Store::begin_step`].
    pub async fn begin_step(&self, step: &NewStep) -> Result<StepStart, StoreError> {
        self.store.begin_step(&self.lease, step).await
    }

    /// Records the end of a step; see [`Store::end_step`].
    pub async fn end_step(&self, key: &str, end: &StepEnd) -> Result<(), StoreError> {
        self.store.end_step(&self.lease, key, end).await
    }

    /// Keeps a page that the run has read; see [`Store::save_page`].
    pub async fn save_page(&self, page: &Page) -> Result<(), StoreError> {
        self.store.save_page(&self.lease, page, self.max_bytes).await
    }

    /// Asks the owner of the job, or finds the question; see [`Store::ask`]. A run that gets an open question returns
    /// [`crate::Step::Wait`] and asks again when it is resumed, or waits with [`RunJournal::wait_for_answer`].
    pub async fn ask(&self, question: &NewQuestion) -> Result<Question, StoreError> {
        self.store.ask(&self.lease, question).await
    }

    /// Asks the owner of the job and waits in the run until the question has an answer, or its deadline is over.
    /// Cancel-safe.
    pub async fn wait_for_answer(
        &self,
        question: &NewQuestion,
    ) -> Result<QuestionState, StoreError> {
        let mut rev = self.store.rev().await?;
        let mut asked = self.ask(question).await?;
        while asked.state == QuestionState::Open {
            let left = asked.deadline.since(self.store.now());
            let wait = ChangeWait { at_most: left.min(LONGEST_WAIT), look_every: LOOK_EVERY };
            let changes = self.store.changes(rev, wait).await?;
            rev = changes.rev;
            let is_over = asked.deadline <= self.store.now();
            if is_over || changes.jobs.iter().any(|change| change.id == self.lease.job) {
                let job = self.store.job(&Scope::Operator, &self.lease.job).await?;
                if is_over || job.is_none_or(|job| job.questions.open() != Some(&asked)) {
                    asked = self.ask(question).await?;
                }
            }
        }
        Ok(asked.state)
    }

    /// Removes a question with its answer, once the answer is recorded; see [`Store::close_question`].
    pub async fn close_question(&self, key: &str) -> Result<(), StoreError> {
        self.store.close_question(&self.lease, key, CloseReason::Recorded).await
    }

    /// Withdraws an open question that nobody waits for any more. Returns the answer if it has one, for the run to record.
    pub async fn withdraw_question(&self, key: &str) -> Result<Option<Answer>, StoreError> {
        self.store.close_question(&self.lease, key, CloseReason::Unwanted).await?;
        let job = self.store.job(&Scope::Operator, &self.lease.job).await?;
        let current = job.and_then(|job| job.questions.current);
        Ok(match current.filter(|question| question.key == key).map(|question| question.state) {
            Some(QuestionState::Answered(answer)) => Some(answer),
            Some(QuestionState::Open | QuestionState::NotAnswered) | None => None,
        })
    }

    /// Returns the steps that were recorded so far, without their outputs; see [`Store::steps`].
    pub async fn steps(&self) -> Result<Vec<JournalStep>, StoreError> {
        self.store.steps(&Scope::Operator, &self.lease.job).await
    }

    /// Returns the outputs of steps of these kinds of the earlier jobs of the conversation, the newest job first; none
    /// for a job without a conversation.
    pub async fn earlier_outputs(
        &self,
        kinds: &[&str],
    ) -> Result<Vec<Vec<StepOutput>>, StoreError> {
        let Some(job) = self.store.job(&Scope::Operator, &self.lease.job).await? else {
            return Ok(Vec::new());
        };
        let Some(conversation) = &job.new.conversation else { return Ok(Vec::new()) };
        let scope = Scope::Owner(job.new.owner.clone());
        let turns = self.store.turns(&scope, conversation).await?;
        let mut outputs = Vec::new();
        for earlier in turns.iter().rev().filter(|turn| turn.turn < job.turn) {
            outputs.push(self.store.step_outputs(&scope, &earlier.id, kinds).await?);
        }
        Ok(outputs)
    }

    /// Returns the pages that the job's subject has kept, by the addresses that `is_wanted` chooses: the researcher's report
    /// cites the pages that its run has read. Empty if the job is about no other one.
    pub async fn pages_of_subject(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<HashMap<String, Page>, StoreError> {
        let mut pages = HashMap::new();
        let job = self.store.job(&Scope::Operator, &self.lease.job).await?;
        let Some((owner, subject)) = job.and_then(|job| Some((job.new.owner, job.new.subject?)))
        else {
            return Ok(pages);
        };
        let kinds = [ResearchRecord::READ, ResearchRecord::NOTES];
        let scope = Scope::Owner(owner.clone());
        let outputs = self.store.step_outputs(&scope, &subject, &kinds).await?;
        for record in outputs.iter().filter_map(ResearchRecord::parse) {
            for (url, digest) in record.kept_pages() {
                if is_wanted(url)
                    && !pages.contains_key(url)
                    && let Some(page) = self.store.page(&owner, &digest).await?
                {
                    pages.insert(url.to_owned(), page);
                }
            }
        }
        Ok(pages)
    }

    /// Returns a page that the run has kept, or another run of the same owner.
    pub async fn page(&self, digest: &[u8; 32]) -> Result<Option<Page>, StoreError> {
        let Some(job) = self.store.job(&Scope::Operator, &self.lease.job).await? else {
            return Ok(None);
        };
        self.store.page(&job.new.owner, digest).await
    }
}
