//! The state of a run, and its requests to the model.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use outlast_core::{Day, NanoUsd, ProviderError, ProviderErrorKind, ResearchRequest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::SharedState;
use crate::engine_channel::EngineChannel;
use crate::limits::{Limits, token_cost};
use crate::model::json::parse_answer;
use crate::model::tokens::{TokenFactor, estimate_tokens};
use crate::model::window::{ask_token_factor, ask_window};
use crate::model::{ChatAnswer, ChatEnd, ChatRequest, chat};
use crate::prompts;
use crate::steps::{RequestResult, StepOutcome, StepSpec, StepUsage, Steps};

/// The tokens that a server adds to a prompt: the template of the chat, and the schema if it is written out.
const OVERHEAD: u64 = 300;
/// The smallest window in tokens with which a run begins; the prompts are made for 4,096.
const SMALLEST_WINDOW: u32 = 2_048;
/// The reasons of a failed step after which the same question is asked with half of the passages.
const TOO_LONG: &str = "the prompt does not fit the model's window";
const CUT: &str = "the model server cut the prompt";
/// The share of a limit at which collecting stops and writing begins, in percent (K4).
const COLLECT: u64 = 85;

/// The facts that stay the same in all attempts: the first step of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The version of the prompts.
    version: u32,
    pub(crate) date: String,
    model: String,
    window: u32,
    token_factor: u32,
    seed: u32,
    pub(crate) limits: Limits,
}

/// A run that is under way.
pub(crate) struct RunContext {
    pub(crate) shared: Arc<SharedState>,
    pub(crate) ask: ResearchRequest,
    pub(crate) steps: Arc<Steps>,
    pub(crate) header: Header,
    reports: Arc<EngineChannel>,
    began: Instant,
    window: AtomicU32,
    was_cut: AtomicBool,
    was_halved: AtomicBool,
    /// The bounds of the questions that are on their way.
    in_flight: Mutex<QuestionBound>,
    /// The tokens that the server counted for each 1,000 estimated ones; zero while it is unknown.
    ratio: AtomicU32,
}

/// A question to the model.
pub(crate) struct Question {
    pub(crate) key: String,
    /// The kind of the step.
    pub(crate) kind: &'static str,
    pub(crate) system: String,
    pub(crate) head: String,
    /// The parts that may be left out, the least important last.
    pub(crate) parts: Vec<String>,
    pub(crate) schema: Value,
    pub(crate) max_tokens: u64,
    /// True for a question that collects.
    pub(crate) needs_room: bool,
}

/// The bound of a question.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QuestionBound {
    pub(crate) cost: NanoUsd,
    pub(crate) tokens: u64,
}

impl QuestionBound {
    fn plus(self, other: Self) -> Self {
        let cost = NanoUsd(self.cost.0.saturating_add(other.cost.0));
        Self { cost, tokens: self.tokens.saturating_add(other.tokens) }
    }
}

/// A question that is on its way; removed from the sum on drop.
struct InFlight<'a> {
    all: &'a Mutex<QuestionBound>,
    own: QuestionBound,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.cost.0 = all.cost.0.saturating_sub(self.own.cost.0);
        all.tokens = all.tokens.saturating_sub(self.own.tokens);
    }
}

/// Refuses a window in which a prompt and its answer do not fit.
fn check_window(shared: &SharedState, window: u32) -> Result<(), ProviderError> {
    if window >= SMALLEST_WINDOW {
        return Ok(());
    }
    let model = &shared.settings.model;
    let sentence = format!(
        "the window of {model} has {window} tokens, and research needs {SMALLEST_WINDOW}: start the model server with a \
         larger one (OLLAMA_CONTEXT_LENGTH, `llama-server -c`), or correct researcher.context_tokens"
    );
    Err(ProviderError::new(ProviderErrorKind::Misconfigured, sentence))
}

impl RunContext {
    /// Reads or records the header.
    pub(crate) async fn open(
        shared: Arc<SharedState>,
        ask: ResearchRequest,
        limits: Limits,
        steps: Arc<Steps>,
        reports: Arc<EngineChannel>,
    ) -> Result<Self, ProviderError> {
        let today = shared.clock.now().day();
        let question = ask.question().to_owned();
        let header = if steps.has_ended("header") {
            String::new()
        } else {
            // Asking costs nothing, so it is repeated after a crash. A window that was guessed while the server could
            // not be reached would stay wrong for the whole run.
            steps.await_model(&shared).await?;
            let window = ask_window(&shared).await;
            check_window(&shared, window)?;
            let sample = format!("{question}\n{}\n{}", prompts::NOTE, prompts::SECTION);
            let TokenFactor(token_factor) = ask_token_factor(&shared, &sample).await;
            let seed = crate::steps::digest_of(&[&question]);
            let seed = u32::from_be_bytes([seed[0], seed[1], seed[2], seed[3]]) >> 1;
            let header = Header {
                version: prompts::VERSION,
                date: today.to_string(),
                model: shared.settings.model.clone(),
                window,
                token_factor,
                seed,
                limits,
            };
            serde_json::to_string(&header).unwrap_or_default()
        };
        let header = steps.decide("header", || header).await?;
        let header: Header = serde_json::from_str(&header).map_err(|_| {
            let sentence =
                "the run was begun by another version of outlast; start the research again";
            ProviderError::new(ProviderErrorKind::Misconfigured, sentence)
        })?;
        Ok(Self {
            window: AtomicU32::new(header.window),
            shared,
            ask,
            steps,
            header,
            reports,
            began: Instant::now(),
            was_cut: AtomicBool::new(false),
            was_halved: AtomicBool::new(false),
            in_flight: Mutex::default(),
            ratio: AtomicU32::new(0),
        })
    }

    /// Returns the day on which the run began.
    pub(crate) fn date(&self) -> Day {
        Day::parse(&self.header.date).unwrap_or_else(|| self.shared.clock.now().day())
    }

    /// EngineChannel progress.
    pub(crate) fn report(&self, percent: u8, message: impl Into<String>) {
        self.reports.report(percent, message.into());
    }

    /// Shows the text that is finished.
    pub(crate) fn show(&self, text: String) {
        self.reports.show(text);
    }

    /// Ends a phase: if the server cut a prompt in it, the window is halved, once in a run.
    pub(crate) fn end_phase(&self) {
        if self.was_cut.load(Ordering::Relaxed) && !self.was_halved.swap(true, Ordering::Relaxed) {
            let window = self.window.load(Ordering::Relaxed);
            tracing::warn!(window, "the model server cut a prompt; the window is halved");
            self.window.store(window / 2, Ordering::Relaxed);
        }
    }

    /// Returns the number of tokens that the parts of a question may have.
    pub(crate) fn room(&self, question: &Question) -> u64 {
        let window = u64::from(self.window.load(Ordering::Relaxed));
        let taken = self.count(&question.system) + self.count(&question.head);
        window.saturating_sub(self.max_tokens(question) + OVERHEAD + taken)
    }

    /// Returns the number of tokens of a text.
    pub(crate) fn count(&self, text: &str) -> u64 {
        TokenFactor(self.header.token_factor).count(text)
    }

    fn max_tokens(&self, question: &Question) -> u64 {
        question.max_tokens.min(u64::from(self.window.load(Ordering::Relaxed)) / 4)
    }

    /// Leaves out the last parts that do not fit.
    pub(crate) fn fit(&self, question: &mut Question) {
        let mut room = self.room(question);
        let fits = |part: &String| {
            let tokens = self.count(part);
            let fits = tokens <= room;
            room = room.saturating_sub(tokens);
            fits
        };
        let fitting = question.parts.iter().map(fits).take_while(|fits| *fits).count();
        question.parts.truncate(fitting);
    }

    /// Returns the most that a question may cost.
    pub(crate) fn bound(&self, question: &Question) -> QuestionBound {
        let parts: u64 = question.parts.iter().map(|part| self.count(part)).sum();
        let read = self.count(&question.system) + self.count(&question.head) + parts + OVERHEAD;
        let written = self.max_tokens(question);
        let cost = token_cost(&self.shared.settings.prices, read, written).unwrap_or_default();
        QuestionBound { cost, tokens: read + written }
    }

    /// Asks the model. Returns `None` if it gives no usable answer, also after one repair.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        mut question: Question,
        check: impl Fn(&T) -> Result<(), &'static str>,
    ) -> Result<Option<T>, ProviderError> {
        self.fit(&mut question);
        let answer = match self.send(&question).await? {
            Err(reason) if (reason == TOO_LONG || reason == CUT) && question.parts.len() > 1 => {
                question.parts.truncate(question.parts.len().div_ceil(2));
                question.key.push_str(":half");
                self.send(&question).await?
            }
            answer => answer,
        };
        let Ok(answer) = answer else { return Ok(None) };
        let parse = |answer: &ChatAnswer| {
            let value: T = parse_answer(&answer.content)?;
            check(&value).map_err(str::to_owned).map(|()| value)
        };
        let reason = match parse(&answer) {
            Ok(value) => return Ok(Some(value)),
            Err(reason) => reason,
        };
        tracing::debug!(step = question.key, reason, "an answer of the model cannot be used");
        if answer.finish == "length" {
            question.max_tokens *= 2;
        }
        question.key.push_str("#2");
        question.head.push_str(&format!(
            "\nYour last answer to this could not be used: {}. Answer again, with one JSON object and nothing else.\n",
            &reason[..reason.floor_char_boundary(200)]
        ));
        self.fit(&mut question);
        let Ok(answer) = self.send(&question).await? else { return Ok(None) };
        Ok(parse(&answer).ok())
    }

    /// Sends a question as a step. The inner error is the recorded reason of the failure.
    async fn send(&self, question: &Question) -> Result<Result<ChatAnswer, String>, ProviderError> {
        let bound = self.bound(question);
        let in_flight = {
            let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
            let sum = in_flight.plus(bound);
            if !self.steps.has_ended(&question.key) && !self.is_within(sum, 100) {
                return Ok(Err("the budget of the run is used up".to_owned()));
            }
            *in_flight = sum;
            InFlight { all: &self.in_flight, own: bound }
        };
        let user = format!("{}{}", question.head, question.parts.concat());
        let request = ChatRequest {
            system: question.system.clone(),
            user,
            name: question.kind,
            schema: question.schema.clone(),
            max_tokens: self.max_tokens(question),
            seed: self.header.seed,
        };
        let has_price = token_cost(&self.shared.settings.prices, 1, 1).is_some();
        let spec = StepSpec {
            key: question.key.clone(),
            kind: question.kind,
            // Not the instructions: another version continues the run with its own.
            digest: crate::steps::digest_of(&[&request.user]),
            bound: has_price.then_some(bound.cost),
            needs_room: question.needs_room,
            subject: None,
        };
        let send = || async { self.to_sent(&request, chat(&self.shared, &request).await) }.boxed();
        let outcome = self.steps.take(&spec, Some(&self.shared), send).await;
        drop(in_flight);
        let output = match outcome? {
            StepOutcome::Done(output) => output,
            StepOutcome::Failed(reason) => {
                if reason == CUT {
                    self.was_cut.store(true, Ordering::Relaxed);
                }
                return Ok(Err(reason));
            }
            StepOutcome::NoRoom => return Ok(Err("the run has no room".to_owned())),
        };
        let answer: ChatAnswer = serde_json::from_str(&output).unwrap_or_default();
        if question.kind == "plan" && answer.read > 0 {
            // With the schema, which some servers add to the prompt: the ratio is rather too low than too high.
            let schema = estimate_tokens(&request.schema.to_string());
            let estimate =
                estimate_tokens(&request.system) + estimate_tokens(&request.user) + schema;
            let ratio = answer.read.saturating_mul(1000) / estimate.max(1);
            self.ratio.store(u32::try_from(ratio).unwrap_or(0), Ordering::Relaxed);
        }
        Ok(Ok(answer))
    }

    fn to_sent(&self, request: &ChatRequest, end: ChatEnd) -> RequestResult {
        let failed =
            |reason: &str, usage| RequestResult::Failed { reason: reason.to_owned(), usage };
        match end {
            ChatEnd::Answered(answer) => {
                let usage = self.usage(request, &answer);
                if self.is_cut(request, &answer) {
                    return failed(CUT, usage);
                }
                RequestResult::Done {
                    output: serde_json::to_string(&answer).unwrap_or_default(),
                    usage,
                }
            }
            ChatEnd::TooLong => failed(TOO_LONG, StepUsage::default()),
            ChatEnd::Busy { wait, error } => RequestResult::Busy { wait, error },
            // A server that refuses the plan refuses everything: a report would state that the pages have no answer.
            ChatEnd::Refused(error)
                if error.kind == ProviderErrorKind::Rejected && request.name != "plan" =>
            {
                tracing::warn!(%error, detail = error.detail, "the model server refused a request");
                failed(&error.sentence, StepUsage::default())
            }
            ChatEnd::Refused(error) => RequestResult::Stop(error),
            ChatEnd::Unanswered(error) => RequestResult::Unanswered(error),
        }
    }

    fn usage(&self, request: &ChatRequest, answer: &ChatAnswer) -> StepUsage {
        let (mut read, mut written) = (answer.read, answer.written);
        if read == 0 && written == 0 {
            read = self.count(&request.system) + self.count(&request.user);
            written = self.count(&answer.content).min(request.max_tokens);
        }
        let spent = token_cost(&self.shared.settings.prices, read, written).unwrap_or_default();
        StepUsage { spent, read, written }
    }

    /// Returns true if the server has read much less than was sent.
    fn is_cut(&self, request: &ChatRequest, answer: &ChatAnswer) -> bool {
        let estimate = estimate_tokens(&request.system) + estimate_tokens(&request.user);
        let ratio = match self.ratio.load(Ordering::Relaxed) {
            // Prose has about half of the estimated tokens.
            0 => 570,
            ratio => u64::from(ratio),
        };
        answer.read > 0 && answer.read * 1000 < estimate * ratio * 7 / 10
    }

    /// Returns true if a step of this bound stays within this share of the limits, in percent.
    pub(crate) fn is_within(&self, bound: QuestionBound, percent: u64) -> bool {
        let totals = self.steps.totals();
        let share = |limit: u64| u128::from(limit) * u128::from(percent) / 100;
        let tokens = u128::from(totals.read + totals.written) + u128::from(bound.tokens);
        let cost = u128::from(totals.spent.0) + u128::from(bound.cost.0);
        tokens <= share(self.header.limits.tokens)
            && self.ask.budget.is_none_or(|budget| cost <= share(budget.0))
    }

    /// Decides how many of these steps may be taken within the limits, in their order, and records the decision.
    /// `collects` limits them to the part of each limit that is not reserved for writing.
    pub(crate) async fn allow(
        &self,
        phase: &str,
        bounds: &[QuestionBound],
        collects: bool,
    ) -> Result<usize, ProviderError> {
        let percent = if collects { COLLECT } else { 100 };
        let decide = || {
            if collects && self.is_late() {
                return 0;
            }
            let mut sum = QuestionBound::default();
            let fits = |bound: &QuestionBound| {
                sum = sum.plus(*bound);
                self.is_within(sum, percent)
            };
            bounds.iter().map(fits).take_while(|fits| *fits).count()
        };
        let decision =
            self.steps.decide(&format!("limit:{phase}"), || decide().to_string()).await?;
        Ok(decision.parse::<usize>().unwrap_or(0).min(bounds.len()))
    }

    /// Returns true if 85 % of the time is over.
    fn is_late(&self) -> bool {
        let minutes = u64::from(self.shared.settings.max_minutes.max(1));
        self.began.elapsed() >= Duration::from_secs(minutes * 60) * COLLECT as u32 / 100
    }
}
