//! The plan of a run, shown before the run: one question to the model, and nothing else.

use outlast_core::{NanoUsd, ProviderError, ProviderErrorKind, Request, ResearchRequest};

use crate::Researcher;
use crate::limits::{Limits, token_cost};
use crate::model::json::parse_answer;
use crate::model::tokens::{TokenFactor, estimate_tokens};
use crate::model::{ChatEnd, ChatRequest, chat, wait_for_slot};
use crate::plan::{SubQuestion, plan_question, to_plan};
use crate::steps::digest_of;

/// The plan of a run that has not begun, and its expected cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanPreview {
    pub title: String,
    pub questions: Vec<PreviewedQuestion>,
    /// False if the model gave no usable plan: the question itself is then the plan.
    pub is_usable: bool,
    /// The limits of the run.
    pub rounds: usize,
    pub searches: usize,
    pub pages: usize,
    /// Tokens read and written.
    pub tokens: u64,
    pub minutes: u32,
    /// The usual cost of the run; `None` if a price is unknown.
    pub typical_cost: Option<NanoUsd>,
    /// The highest cost of the run.
    pub highest_cost: Option<NanoUsd>,
    /// The cost of planning; `None` if a price is unknown.
    pub planning_cost: Option<NanoUsd>,
    /// The tokens that the model read and wrote for the plan.
    pub planning_tokens: (u64, u64),
}

/// A sub-question of a plan, with its heading in the report and its first queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewedQuestion {
    pub question: String,
    pub heading: String,
    pub queries: Vec<String>,
}

impl Researcher {
    /// Returns the most that [`Researcher::preview`] may cost; `None` if a price is unknown.
    pub fn preview_bound(&self, request: &Request) -> Option<NanoUsd> {
        let chat = self.plan_request(request);
        let schema = estimate_tokens(&chat.schema.to_string());
        let read = estimate_tokens(&chat.system) + estimate_tokens(&chat.user) + schema;
        token_cost(&self.shared.settings.prices, read, chat.max_tokens)
    }

    /// Asks the model for the plan of a run, once, and begins no run.
    pub async fn preview(&self, request: &Request) -> Result<PlanPreview, ProviderError> {
        let (shared, settings) = (&self.shared, &self.shared.settings);
        let limits = Limits::of(request, settings);
        let chat_request = self.plan_request(request);
        let slot = wait_for_slot(shared).await;
        let answer = match chat(shared, &chat_request).await {
            ChatEnd::Answered(answer) => answer,
            ChatEnd::TooLong => {
                let sentence = "the question does not fit the model's window; ask a shorter one, or set researcher.context_tokens";
                return Err(ProviderError::new(ProviderErrorKind::Misconfigured, sentence));
            }
            ChatEnd::Busy { error, .. } | ChatEnd::Refused(error) | ChatEnd::Unanswered(error) => {
                return Err(error);
            }
        };
        drop(slot);
        let (mut read, mut written) = (answer.read, answer.written);
        if read == 0 && written == 0 {
            read = estimate_tokens(&chat_request.system) + estimate_tokens(&chat_request.user);
            written = TokenFactor::NONE.count(&answer.content).min(chat_request.max_tokens);
        }
        let ask = request.research().cloned().unwrap_or_default();
        let parsed = parse_answer(&answer.content).ok();
        let is_usable = parsed.is_some();
        let plan = to_plan(ask.question(), parsed.unwrap_or_default(), limits.questions);
        Ok(PlanPreview {
            title: plan.title,
            questions: plan.questions.into_iter().map(PreviewedQuestion::from).collect(),
            is_usable,
            rounds: limits.rounds,
            searches: limits.searches,
            pages: limits.pages,
            tokens: limits.tokens,
            minutes: settings.max_minutes,
            typical_cost: limits.typical_cost(&settings.prices),
            highest_cost: limits.highest_cost(&settings.prices),
            planning_cost: token_cost(&settings.prices, read, written),
            planning_tokens: (read, written),
        })
    }

    /// Returns the request for the plan, as a run on this day would send it.
    fn plan_request(&self, request: &Request) -> ChatRequest {
        let ask: ResearchRequest = request.research().cloned().unwrap_or_default();
        let limits = Limits::of(request, &self.shared.settings);
        let asked = plan_question(&ask, self.shared.clock.now().day(), limits.questions);
        let seed = digest_of(&[ask.question()]);
        ChatRequest {
            system: asked.system,
            user: asked.head,
            name: asked.kind,
            schema: asked.schema,
            max_tokens: asked.max_tokens,
            seed: u32::from_be_bytes([seed[0], seed[1], seed[2], seed[3]]) >> 1,
        }
    }
}

impl From<SubQuestion> for PreviewedQuestion {
    fn from(planned: SubQuestion) -> Self {
        let SubQuestion { question, heading, queries } = planned;
        Self { question, heading, queries }
    }
}
