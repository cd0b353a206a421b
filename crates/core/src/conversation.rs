//! A conversation: its jobs in order of turn. Nothing is stored next to them. Files and tools show the results of
//! these functions: the messages, the present state and the cost.

use serde_json::Value;

use crate::{
    Body, ConversationId, Cost, Job, JobState, Message, NanoUsd, Output, Profile, Role, Timestamp,
    Usage, rules,
};

/// The turns of a conversation that may be shown; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    pub id: ConversationId,
    first: Box<Job>,
    later: Vec<Job>,
}

/// A message of a conversation as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationMessage {
    pub role: Role,
    /// The text; a report without the model's thinking.
    pub content: String,
    /// The model's thinking before this message, if it is known.
    pub thinking: Option<String>,
    /// True for a question that was never answered. Such a question is not sent upstream again.
    pub failed: bool,
}

impl Conversation {
    /// Creates a conversation from its turns in order, including hidden ones; `None` if there is nothing to show.
    pub fn from_turns(id: ConversationId, turns: Vec<Job>) -> Option<Self> {
        let mut shown = turns.into_iter().filter(Job::is_shown);
        let first = Box::new(shown.next()?);
        Some(Self { id, first, later: shown.collect() })
    }

    /// Returns the turns, oldest first.
    pub fn turns(&self) -> impl Iterator<Item = &Job> {
        std::iter::once(&*self.first).chain(&self.later)
    }

    /// Returns the last turn. Its state is the state of the conversation.
    pub fn last(&self) -> &Job {
        self.later.last().unwrap_or(&self.first)
    }

    /// Returns whether the conversation has more than one turn.
    pub fn was_continued(&self) -> bool {
        !self.later.is_empty()
    }

    /// Returns the provider that the conversation belongs to (P1): the one that began it, unless it holds text of the
    /// library. The text of the library stays on this machine, so such a conversation belongs to the library,
    /// whichever provider began it.
    pub fn provider(&self) -> &str {
        let by_researcher = || {
            self.turns().find(|job| job.new.profile.reads_documents()).map(|job| &job.new.profile)
        };
        match (self.holds_answers_of_library(), by_researcher()) {
            (true, _) => Profile::LIBRARY,
            (false, Some(profile)) => profile.provider(),
            (false, None) => self.first.new.profile.provider(),
        }
    }

    /// Returns whether the conversation holds text of documents of this machine: it stays here for good, unless a
    /// person decides otherwise (P1, K9).
    pub fn holds_library_text(&self) -> bool {
        self.holds_answers_of_library() || self.turns().any(|job| job.new.profile.reads_documents())
    }

    /// Returns whether the conversation holds an answer of the library: from one of its turns, or from a folder that
    /// its first turn continued.
    fn holds_answers_of_library(&self) -> bool {
        let is_local = |job: &Job| {
            job.new.profile.provider() == Profile::LIBRARY
                || job.new.former_owner() == Some(Profile::LIBRARY)
        };
        let is_shared = || {
            let first = &self.first.new;
            first.sends_library_text() && !first.profile.shares_documents()
        };
        self.turns().any(is_local) || is_shared()
    }

    /// Returns the time of the first turn.
    pub fn created_at(&self) -> Timestamp {
        self.first.created_at
    }

    /// Returns the time of the last change of any turn.
    pub fn updated_at(&self) -> Timestamp {
        self.turns().map(|job| job.updated_at).max().unwrap_or(self.first.updated_at)
    }

    /// Returns all messages: what the first turn sent upstream, then each question and each report.
    pub fn messages(&self) -> Vec<ConversationMessage> {
        let mut messages = Vec::new();
        for (at, job) in self.turns().enumerate() {
            let failed = matches!(job.state, JobState::Failed { .. } | JobState::Cancelled { .. });
            let mut asked = sent_messages(job);
            let question = asked.pop();
            let earlier = if at == 0 { asked } else { Vec::new() };
            messages.extend(earlier.into_iter().map(|message| show_message(message, false)));
            messages.extend(question.map(|question| show_message(question, failed)));
            messages.extend(report(job));
        }
        messages
    }

    /// Returns the messages that are sent upstream with a new question: all except instructions and questions without
    /// an answer.
    pub fn context(&self) -> Vec<Message> {
        let sent = |message: &ConversationMessage| !message.failed && message.role != Role::System;
        let messages = self.messages().into_iter().filter(sent);
        messages
            .map(|ConversationMessage { role, content, .. }| Message { role, content })
            .collect()
    }

    /// Returns the last report, if there is one.
    pub fn last_output(&self) -> Option<&Output> {
        self.turns().filter_map(Job::output).last()
    }

    /// Returns the total usage of all turns.
    pub fn usage(&self) -> Usage {
        self.turns().filter_map(Job::output).fold(Usage::default(), |sum, Output { usage, .. }| {
            Usage {
                input_tokens: sum.input_tokens.saturating_add(usage.input_tokens),
                output_tokens: sum.output_tokens.saturating_add(usage.output_tokens),
                total_tokens: sum.total_tokens.saturating_add(usage.total_tokens),
                reasoning_tokens: sum.reasoning_tokens.saturating_add(usage.reasoning_tokens),
                citation_tokens: sum.citation_tokens.saturating_add(usage.citation_tokens),
                searches: sum.searches.saturating_add(usage.searches),
            }
        })
    }

    /// Returns the total cost of all turns. It is as certain as the least certain part.
    pub fn cost(&self) -> Cost {
        sum_costs(self.turns().filter_map(Job::output).map(|output| output.cost))
    }

    /// Returns the amount that may have been spent on turns whose cost is not known.
    pub fn maybe_spent(&self) -> NanoUsd {
        self.turns().map(rules::maybe_spent).sum()
    }
}

fn sum_costs(costs: impl Iterator<Item = Cost>) -> Cost {
    let doubt = |cost: Cost| match cost {
        Cost::Reported(money) => (0, money),
        Cost::Computed(money) => (1, money),
        Cost::Estimate(money) => (2, money),
        Cost::Unknown => (3, NanoUsd(0)),
    };
    let sum = costs.map(doubt).reduce(|(most, sum), (doubt, money)| {
        (most.max(doubt), NanoUsd(sum.0.saturating_add(money.0)))
    });
    match sum {
        Some((0, money)) => Cost::Reported(money),
        Some((1, money)) => Cost::Computed(money),
        Some((2, money)) => Cost::Estimate(money),
        Some((_, NanoUsd(0))) | None => Cost::Unknown,
        // The known part, if another part is unknown.
        Some((_, money)) => Cost::Estimate(money),
    }
}

/// Returns the messages that a turn sent upstream; the question comes last.
fn sent_messages(job: &Job) -> Vec<Message> {
    let ask = job.new.request.research();
    let mut messages = ask.map(|ask| ask.messages.clone()).unwrap_or_default();
    if messages.is_empty() {
        // The input of a workflow, not a question. Its title describes it best.
        messages.push(Message { role: Role::User, content: job.new.title.clone() });
    }
    messages
}

fn show_message(Message { role, content }: Message, failed: bool) -> ConversationMessage {
    ConversationMessage { role, content, thinking: None, failed }
}

fn report(job: &Job) -> Option<ConversationMessage> {
    let (content, thinking) = match &job.output()?.body {
        Body::Report { text, thinking, .. } => (text.clone(), thinking.clone()),
        Body::Tool { content, .. } => {
            let texts =
                content.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
            (texts.collect::<Vec<_>>().join("\n"), None)
        }
    };
    Some(ConversationMessage { role: Role::Assistant, content, thinking, failed: false })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use std::sync::Arc;

    use super::*;
    use crate::rules::tests::{NOW, queued};
    use crate::{Code, Failure, Visibility};

    fn turn(messages: Value, state: JobState) -> Job {
        let mut job = queued().job;
        job.new.request = json!({ "messages": messages }).into();
        job.new.conversation = Some(ConversationId::new("c"));
        job.state = state;
        job
    }

    fn answered(text: &str) -> JobState {
        let output = Output {
            body: Body::report(text, Vec::new()),
            model: None,
            usage: Usage::default(),
            cost: Cost::Unknown,
        };
        JobState::Succeeded { at: NOW, output: Arc::new(output) }
    }

    fn conversation(turns: Vec<Job>) -> Conversation {
        Conversation::from_turns(ConversationId::new("c"), turns).unwrap()
    }

    fn listed(conversation: &Conversation) -> Vec<(Role, String, bool)> {
        let messages = conversation.messages().into_iter();
        messages.map(|said| (said.role, said.content, said.failed)).collect()
    }

    #[test]
    fn messages_are_questions_and_reports_in_order_of_turn() {
        let first = json!([
            { "role": "system", "content": "be good" },
            { "role": "user", "content": "one?" }
        ]);
        // A later turn sent everything again; only its question is new.
        let second = json!([
            { "role": "user", "content": "one?" },
            { "role": "assistant", "content": "one." },
            { "role": "user", "content": "two?" }
        ]);
        let turns =
            vec![turn(first, answered("one.")), turn(second, JobState::Queued { run_at: NOW })];
        let conversation = conversation(turns);
        let expected = [
            (Role::System, "be good", false),
            (Role::User, "one?", false),
            (Role::Assistant, "one.", false),
            (Role::User, "two?", false),
        ]
        .map(|(role, content, failed)| (role, content.to_owned(), failed));
        assert_eq!(listed(&conversation), expected);
        let sent = conversation.context().into_iter().map(|message| message.role);
        let expected = [Role::User, Role::Assistant, Role::User];
        assert_eq!(sent.collect::<Vec<_>>(), expected, "instructions are not sent again");
    }

    /// P1: a conversation belongs to the provider that began it, or to the library once the library has answered in
    /// it.
    #[test]
    fn a_conversation_belongs_to_its_first_provider_or_to_the_library() {
        let by = |provider: &str| {
            let mut job = turn(json!([{ "role": "user", "content": "x" }]), answered("y"));
            job.new.profile = Profile::new(provider);
            job
        };
        let (perplexity, library) = ("perplexity/agent https://api.example 0", "library 0");
        let cases = [
            (vec![perplexity], Profile::PERPLEXITY),
            (vec![library], Profile::LIBRARY),
            (vec![library, perplexity], Profile::LIBRARY),
            (vec![perplexity, library, perplexity], Profile::LIBRARY),
        ];
        for (turns, provider) in cases {
            let turns = turns.into_iter().map(by).collect();
            assert_eq!(conversation(turns).provider(), provider);
        }
        // K9: a researcher that reads documents marks its conversation for good, and goes on with it.
        let (local, remote) = (Profile::LOCAL_RESEARCHER, Profile::SHARING_RESEARCHER);
        for (turns, provider, holds) in [
            (vec![local], Profile::RESEARCHER, true),
            (vec![remote, perplexity], Profile::RESEARCHER, true),
            (vec![perplexity, local], Profile::RESEARCHER, true),
            (vec![local, library], Profile::LIBRARY, true),
            (vec!["researcher/local http://127.0.0.1/v1 m"], Profile::RESEARCHER, false),
        ] {
            let conversation = conversation(turns.into_iter().map(by).collect());
            assert_eq!(
                (conversation.provider(), conversation.holds_library_text()),
                (provider, holds)
            );
        }
        // The first turn moved a folder that held text of the library.
        let mut moved = by(perplexity);
        moved.new = moved.new.with_moved_from(Profile::LIBRARY);
        assert_eq!(conversation(vec![moved, by(perplexity)]).provider(), Profile::LIBRARY);
    }

    /// B13: a failed question is marked, and is not sent upstream again.
    #[test]
    fn a_failed_question_is_shown_and_not_sent_again() {
        let mut failed =
            turn(json!([{ "role": "user", "content": "bad?" }]), JobState::Failed { at: NOW });
        failed.failures.push(Failure {
            code: Code::Timeout,
            message: "late".to_owned(),
            detail: None,
            at: NOW,
            run_goes_on: false,
            run: crate::RunStatus::Unknown,
        });
        let good = turn(json!([{ "role": "user", "content": "good?" }]), answered("yes"));
        let conversation = conversation(vec![failed, good]);
        assert!(conversation.messages()[0].failed);
        let context: Vec<String> =
            conversation.context().into_iter().map(|message| message.content).collect();
        assert_eq!(context, ["good?", "yes"]);
    }

    /// C9: sums are exact, and no more certain than their parts.
    #[test]
    fn costs_add_up_and_doubt_is_kept() {
        let reported = Cost::Reported(NanoUsd(1));
        let cases = [
            (vec![], Cost::Unknown),
            (vec![reported, reported], Cost::Reported(NanoUsd(2))),
            (vec![reported, Cost::Computed(NanoUsd(2))], Cost::Computed(NanoUsd(3))),
            (vec![reported, Cost::Estimate(NanoUsd(2))], Cost::Estimate(NanoUsd(3))),
            (vec![reported, Cost::Unknown], Cost::Estimate(NanoUsd(1))),
            (vec![Cost::Unknown], Cost::Unknown),
        ];
        for (costs, expected) in cases {
            assert_eq!(sum_costs(costs.into_iter()), expected);
        }
    }

    /// C5: a held call is hidden until it has succeeded.
    #[test]
    fn a_held_turn_is_hidden_until_it_succeeds() {
        let mut held =
            turn(json!([{ "role": "user", "content": "x" }]), JobState::Queued { run_at: NOW });
        held.new.visibility = Visibility::Unpromised;
        assert_eq!(Conversation::from_turns(ConversationId::new("c"), vec![held.clone()]), None);
        held.state = answered("y");
        assert!(Conversation::from_turns(ConversationId::new("c"), vec![held]).is_some());
    }
}
