//! `search_research`: finds the caller's finished research by the words of its questions and reports (L5). Free.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use outlast_core::search::{finds, words};
use outlast_core::{Body, Cursor, Job, JobQuery, StateKind, Summary};
use rmcp::model::JsonObject;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Research;
use crate::arguments::{self, check};
use crate::caller::Caller;
use crate::quoted::{Quotation, TextBlocks};
use crate::reply::{Refusal, ToolResult, answer_with_blocks};
use crate::text::{count_noun, printable, title};
use crate::tool_names::research::HISTORY;

/// The number of jobs that are read from the index at a time.
const PAGE: u32 = 50;
/// The maximum number of such pages: jobs without a conversation have the words too, and are skipped.
const MAX_PAGES: u32 = 10;
/// The maximum number of words that are looked for one by one.
const MAX_SINGLE_WORDS: usize = 8;
/// The maximum number of characters of a passage.
const PASSAGE_CHARS: usize = 400;
/// The number of words of a long paragraph before the first one that was looked for.
const WORDS_BEFORE: usize = 15;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchResearchArguments {
    query: String,
    #[serde(default = "default_limit")]
    limit: i64,
}

fn default_limit() -> i64 {
    5
}

/// One earlier research.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FoundResearch {
    conversation_id: String,
    title: String,
    provider: String,
    finished_at: String,
    cost_usd: Option<f64>,
    /// The paragraph of the report with the most words of the query.
    passage: String,
}

impl Research {
    pub(super) async fn search_research(&self, caller: &Caller, given: JsonObject) -> ToolResult {
        let SearchResearchArguments { query, limit } = arguments::read(given)?;
        let length = query.chars().count();
        check((1..=500).contains(&length), || {
            format!("query must have 1 to 500 characters, not {length}")
        })?;
        check((1..=20).contains(&limit), || format!("limit must be 1 to 20, not {limit}"))?;
        let wanted = words(&query);
        check(!wanted.is_empty(), || "query must have a word".to_owned())?;
        let limit = limit.unsigned_abs() as usize;
        let mut jobs = self.with_words(caller, &query, limit).await?;
        if jobs.is_empty() && wanted.len() > 1 {
            jobs = self.with_most_words(caller, &wanted).await?;
        }
        let mut results = Vec::new();
        for found in jobs.iter().take(limit) {
            let job = self.engine.job(&caller.scope(), &found.id).await?;
            results.extend(job.and_then(|job| show(&job, &wanted)));
        }
        Ok(answer_with_blocks(text(&results), json!({ "results": results })))
    }

    /// Returns the newest finished research that has all these words, each conversation once.
    async fn with_words(
        &self,
        caller: &Caller,
        words: &str,
        at_most: usize,
    ) -> Result<Vec<Summary>, Refusal> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        let mut after: Option<Cursor> = None;
        for _ in 0..MAX_PAGES {
            let query = JobQuery {
                states: vec![StateKind::Succeeded],
                words: Some(words.to_owned()),
                limit: PAGE,
                after,
                ..JobQuery::default()
            };
            let page = self.engine.list(&caller.scope(), &query).await?;
            let of_conversations = page.jobs.into_iter().filter(|job| job.conversation.is_some());
            found.extend(of_conversations.filter(|job| seen.insert(job.conversation.clone())));
            after = page.next;
            if after.is_none() || found.len() >= at_most {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the research that has at least half of these words, that with the most words first: a whole sentence
    /// rarely has all its words in a report.
    async fn with_most_words(
        &self,
        caller: &Caller,
        wanted: &BTreeSet<String>,
    ) -> Result<Vec<Summary>, Refusal> {
        let mut longest: Vec<&String> = wanted.iter().collect();
        longest.sort_by_key(|word| Reverse(word.chars().count()));
        longest.truncate(MAX_SINGLE_WORDS);
        let mut counts = HashMap::new();
        for word in &longest {
            for job in self.with_words(caller, word, PAGE as usize).await? {
                counts.entry(job.conversation.clone()).or_insert((0, job)).0 += 1;
            }
        }
        let mut found: Vec<(usize, Summary)> = counts.into_values().collect();
        found.retain(|(count, _)| count * 2 >= longest.len());
        found.sort_by_key(|(count, job)| Reverse((*count, job.created_at, job.id.to_string())));
        Ok(found.into_iter().map(|(_, job)| job).collect())
    }
}

fn show(job: &Job, wanted: &BTreeSet<String>) -> Option<FoundResearch> {
    let output = job.output()?;
    let Body::Report { text, .. } = &output.body else { return None };
    Some(FoundResearch {
        conversation_id: job.new.conversation.as_ref()?.as_str().to_owned(),
        title: title(&job.new.title),
        provider: job.new.profile.provider().to_owned(),
        finished_at: job.ended_at()?.to_string(),
        cost_usd: output.cost.amount().map(|amount| amount.as_usd()),
        passage: passage(&printable(text), wanted),
    })
}

/// Returns the first paragraph with the most wanted words, or its part around the first of them.
fn passage(report: &str, wanted: &BTreeSet<String>) -> String {
    let has = |word: &String, words: &BTreeSet<String>| finds(&[word.clone()].into(), words);
    let score = |paragraph: &&str| {
        let words = words(paragraph);
        wanted.iter().filter(|word| has(word, &words)).count()
    };
    let is_heading = |text: &str| text.starts_with('#') && !text.contains('\n');
    let paragraphs = report.split("\n\n").map(str::trim);
    let paragraphs: Vec<&str> =
        paragraphs.filter(|text| !text.is_empty() && !is_heading(text)).collect();
    // The last of several maxima is taken: the first paragraph, in this order.
    let Some(best) = paragraphs.into_iter().rev().max_by_key(score) else { return String::new() };
    let text: Vec<&str> = best.split_whitespace().collect();
    let is_short = best.chars().count() <= PASSAGE_CHARS;
    let first = text.iter().position(|part| wanted.iter().any(|word| has(word, &words(part))));
    let start = if is_short { 0 } else { first.unwrap_or(0).saturating_sub(WORDS_BEFORE) };
    let mut passage = if start > 0 { "\u{2026}".to_owned() } else { String::new() };
    for part in text.iter().skip(start) {
        if passage.chars().count() + part.chars().count() >= PASSAGE_CHARS {
            passage.push_str(" \u{2026}");
            break;
        }
        passage.push_str(if passage.is_empty() { "" } else { " " });
        passage.push_str(part);
    }
    passage
}

fn text(results: &[FoundResearch]) -> Vec<rmcp::model::ContentBlock> {
    let Some(first) = results.first() else {
        return TextBlocks::new("", "No finished research has these words.").finish();
    };
    let found = count_noun(results.len(), "finished research has", "finished researches have");
    let lead = format!("{found} these words; `{HISTORY}` reads one at no cost:");
    let mut text = TextBlocks::new(&first.conversation_id, lead);
    let lines = results.iter().map(|found| {
        let cost = found.cost_usd.map_or("cost unknown".to_owned(), |usd| format!("${usd:.2}"));
        format!(
            "- `{}` {} ({}, {}, {cost})\n  {}",
            found.conversation_id, found.title, found.provider, found.finished_at, found.passage
        )
    });
    text.quote(Quotation::Passages, &lines.collect::<Vec<_>>().join("\n"));
    text.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L5: the passage is the paragraph with the most words of the query, cut around them.
    #[test]
    fn l5_a_passage_is_the_paragraph_with_the_most_words() {
        let long = format!("{} leases and fences {}", "before ".repeat(80), "after ".repeat(80));
        let report = format!("# Leases and fences\n\nOf leases.\n\n{long}\n\nFences, leases.");
        let found = passage(&report, &words("leases fence"));
        assert!(found.starts_with("\u{2026} before") && found.ends_with('\u{2026}'), "{found}");
        assert!(found.contains("leases and fences after"), "{found}");
        assert!(found.chars().count() <= PASSAGE_CHARS + 2, "{found}");
        assert_eq!(passage(&report, &words("of")), "Of leases.");
        assert_eq!(passage("# Only a heading", &words("heading")), "");
    }
}
