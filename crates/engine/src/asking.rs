//! The store of a journal, which notifies observers of the questions of runs (M4).

use std::sync::Arc;

use async_trait::async_trait;
use outlast_core::{
    Answer, Job, Lease, NewQuestion, Question, QuestionEvent, QuestionState, Scope, Store,
    StoreError, StoreEvent, StoreMethod, StoreWrapper,
};

use crate::observers::Observers;

/// A store whose questions observers are notified of.
pub(crate) struct AskingStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) observers: Observers,
}

#[async_trait]
impl StoreWrapper for AskingStore {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    fn after(&self, _: StoreMethod, _: Option<&StoreError>) {}

    async fn ask(&self, lease: &Lease, new: &NewQuestion) -> Result<Question, StoreError> {
        // Only the run of this lease asks questions and ends them at their deadline, so what was before is known.
        let before = self.store.job(&Scope::Operator, &lease.job).await?;
        let asked = self.store.ask(lease, new).await?;
        if let Some(before) = before
            && let Some(event) = event_of(&before, &asked)
        {
            self.observers.notify(StoreEvent::Asked { job: &before, event }).await;
        }
        Ok(asked)
    }
}

/// Returns what has happened to the questions of a job.
fn event_of(before: &Job, after: &Question) -> Option<QuestionEvent> {
    let known = before.questions.current.as_ref().filter(|question| question.id == after.id);
    let has_timed_out = match &after.state {
        QuestionState::Answered(Answer { is_default, .. }) => *is_default,
        QuestionState::NotAnswered => true,
        QuestionState::Open => false,
    };
    match known {
        None => Some(QuestionEvent::Asked),
        Some(known) => {
            (has_timed_out && known.state == QuestionState::Open).then_some(QuestionEvent::TimedOut)
        }
    }
}
