//! The plan: sub-questions with their queries and headings.

use std::collections::HashSet;

use outlast_core::{Day, ProviderError, QuestionsRecord, ResearchRecord, ResearchRequest, Role};

use crate::prompts::{self, PlanAnswer, enclose, fill};
use crate::steps::to_json;
use crate::work::{Question, RunContext};

const MAX_QUERIES: usize = 3;
const MAX_LINE: usize = 300;
/// The part of an earlier report that a follow-up question is read with; in bytes.
const MAX_EARLIER: usize = 1_500;

/// The plan of a run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) title: String,
    pub(crate) questions: Vec<SubQuestion>,
}

/// A question that is a part of the user's question.
#[derive(Clone, Debug)]
pub(crate) struct SubQuestion {
    pub(crate) question: String,
    pub(crate) heading: String,
    pub(crate) queries: Vec<String>,
}

/// Asks the model for a plan. Without a usable answer, the question itself is the plan.
pub(crate) async fn make_plan(work: &RunContext) -> Result<Plan, ProviderError> {
    work.report(2, "Planning the research");
    let at_most = work.header.limits.questions;
    let asked = plan_question(&work.ask, work.date(), at_most);
    let is_usable = |answer: &PlanAnswer| {
        let has_question = answer.questions.iter().any(|it| !it.question.trim().is_empty());
        if has_question { Ok(()) } else { Err("it has no sub-questions") }
    };
    let answer = work.ask(asked, is_usable).await?.unwrap_or_default();
    work.end_phase();
    let plan = to_plan(work.ask.question(), answer, at_most);
    let questions = || {
        let questions = plan.questions.iter().map(|it| it.question.clone()).collect();
        to_json(&QuestionsRecord { questions })
    };
    work.steps.record("questions", ResearchRecord::QUESTIONS, questions).await?;
    Ok(plan)
}

/// Returns the question for a plan of at most this many sub-questions.
pub(crate) fn plan_question(ask: &ResearchRequest, date: Day, at_most: usize) -> Question {
    let question = ask.question();
    let mut head = enclose("question", "", &question[..question.floor_char_boundary(4_000)]);
    if let Some(earlier) = earlier_turn(ask) {
        head = format!("{earlier}{head}");
    }
    Question {
        key: "plan".to_owned(),
        kind: "plan",
        system: fill(prompts::PLAN, date, at_most),
        head,
        parts: Vec::new(),
        schema: prompts::plan_schema(),
        max_tokens: 1_200,
        needs_room: false,
    }
}

/// Returns the plan of an answer, without what cannot be used.
pub(crate) fn to_plan(question: &str, answer: PlanAnswer, at_most: usize) -> Plan {
    let title = line(&answer.title);
    let mut seen = HashSet::new();
    let mut questions = Vec::new();
    for planned in answer.questions {
        let sub = line(&planned.question);
        if sub.is_empty() || !seen.insert(sub.to_lowercase()) || questions.len() == at_most {
            continue;
        }
        let mut queries: Vec<_> = planned.queries.iter().map(|query| line(query)).collect();
        queries.retain(|query| !query.is_empty());
        queries.truncate(MAX_QUERIES);
        if queries.is_empty() {
            queries.push(sub.clone());
        }
        let heading = line(&planned.heading);
        let heading = if heading.is_empty() { sub.clone() } else { heading };
        questions.push(SubQuestion { question: sub, heading, queries });
    }
    let own = line(question);
    if questions.is_empty() {
        let queries = vec![own.clone()];
        questions.push(SubQuestion { question: own.clone(), heading: own.clone(), queries });
    }
    Plan { title: if title.is_empty() { own } else { title }, questions }
}

/// Returns the beginning of the last report of the conversation, which the question may refer to.
fn earlier_turn(ask: &ResearchRequest) -> Option<String> {
    let (_, earlier) = ask.messages.split_last()?;
    let report = earlier.iter().rfind(|message| message.role == Role::Assistant)?;
    let end = report.content.floor_char_boundary(MAX_EARLIER);
    Some(enclose("earlier_report", "", &report.content[..end]))
}

/// Returns a text of the model on one line, without marks of Markdown at its ends.
pub(crate) fn line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let bare = joined.trim_matches(['#', '*', '_', '`', ' ']).replace(['[', ']', '<', '>'], "");
    bare[..bare.floor_char_boundary(MAX_LINE)].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompts::PlannedQuestion;

    /// K6: a poor plan becomes a usable one.
    #[test]
    fn k6_a_plan_is_cleaned_and_never_empty() {
        let planned = |question: &str, queries: &[&str]| PlannedQuestion {
            question: question.to_owned(),
            heading: String::new(),
            queries: queries.iter().map(|query| (*query).to_owned()).collect(),
        };
        let answer = PlanAnswer {
            title: "# **Ships**".to_owned(),
            questions: vec![
                planned("How many?", &["a", "", "b", "c", "d"]),
                planned("how many?", &["e"]),
                planned(" ", &[]),
                planned("Why?", &[]),
                planned("Too many", &[]),
            ],
        };
        let plan = to_plan("q", answer, 2);
        assert_eq!(plan.title, "Ships");
        assert_eq!(plan.questions.len(), 2);
        assert_eq!(plan.questions[0].queries, ["a", "b", "c"]);
        assert_eq!(plan.questions[1].queries, ["Why?"]);
        assert_eq!(plan.questions[1].heading, "Why?");
        let empty = to_plan("Why so?", PlanAnswer::default(), 3);
        assert_eq!((empty.title.as_str(), empty.questions.len()), ("Why so?", 1));
    }
}
