//! The definitions of the tools for clients and models. Every conversation includes the descriptions and schemas, so they
//! contain only what a client can rely on.

use std::sync::Arc;

use outlast_core::{Effort, NanoUsd, Profile, Request, ResearchRequest};
use serde_json::{Value, json};

use super::{Research, ResearchMode, ResearchOptions, ResearchSet};
use crate::quoted::UNTRUSTED;
use crate::tool_names::research::{
    AWAIT, CANCEL, CHECK_CITATIONS, HISTORIES, HISTORY, LIST, SEARCH, SEARCH_FOLLOWUP,
    SEARCH_RESEARCH,
};
use crate::tools::recipient::Recipient;
use crate::tools::schema::{
    ListedTool, asks, cancels, domains, flag, join, limit, list_tool, lists, object, one_of,
    open_object, priority, query, question_schema, reads, recency, short_text, text, texts, tool,
};

pub(super) fn tools(set: &Arc<Research>) -> Vec<ListedTool> {
    let reading = |name, title, description: &str, input, output| {
        tool(name, title, description.to_owned(), input, output, reads())
    };
    let mut tools = questions(set);
    let reads_all = &format!(
        "Where a conversation stands and all that was said in it, the report included; an array of ids reads several. \
         {UNTRUSTED}"
    );
    let mut input = read_input("conversationId", json!({ "anyOf": [text(), ids()] }));
    input["properties"]["offset"] = json!({
        "type": "integer",
        "minimum": 0,
        "description": "Goes on with a long report at this character."
    });
    let tool = reading(HISTORY, "Conversation history", reads_all, input, history());
    tools.push(list_tool(set, tool, |set, caller, given| Box::pin(set.history(caller, given))));
    let input = read_input("conversationIds", ids());
    let several = &format!("Several conversations at once. {UNTRUSTED}");
    let tool = reading(HISTORIES, "Conversation histories", several, input.clone(), batch());
    tools.push(list_tool(set, tool, |set, caller, given| Box::pin(set.histories(caller, given))));
    if set.options.mode != ResearchMode::Blocking {
        let waits = format!(
            "Waits until all these conversations have ended; without a progress token {} s at most. Clients cut long \
             calls, often after 60 s: call again, the jobs go on. {UNTRUSTED}",
            set.options.inline_budget.as_secs()
        );
        let tool = reading(AWAIT, "Await conversations", &waits, input, batch());
        tools.push(list_tool(set, tool, |set, caller, given| {
            Box::pin(set.await_histories(caller, given))
        }));
    }
    tools.push(list_conversations_tool(set));
    tools.push(search_research_tool(set));
    if set.options.checks_citations {
        tools.push(check_citations_tool(set));
    }
    tools.push(cancel_research_tool(set));
    tools
}

/// Returns the tool that lists conversations.
fn list_conversations_tool(set: &Arc<Research>) -> ListedTool {
    let newest_first = "Your conversations, newest first.".to_owned();
    let tool = tool(LIST, "List conversations", newest_first, list_input(), list(), lists());
    list_tool(set, tool, |set, caller, given| Box::pin(set.list(caller, given)))
}

/// Returns the tool that finds earlier research.
fn search_research_tool(set: &Arc<Research>) -> ListedTool {
    let finds = format!(
        "Finds your finished research by the words of its questions and reports. Free: use it before you pay for a \
         question again. {UNTRUSTED}"
    );
    let query = json!({ "type": "string", "minLength": 1, "maxLength": 500 });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": 20, "default": 5 });
    let input = object(json!({ "query": query, "limit": limit }), &["query"]);
    let title = "Search earlier research";
    let tool = tool(SEARCH_RESEARCH, title, finds, input, found_schema(), reads());
    list_tool(set, tool, |set, caller, given| Box::pin(set.search_research(caller, given)))
}

/// Returns the tool that checks citations.
fn check_citations_tool(set: &Arc<Research>) -> ListedTool {
    let checks = format!(
        "Fetches the pages that a report cites: which sentences have their facts there? \"supported\" means found, not \
         true. Free. {UNTRUSTED}"
    );
    let message = json!({
        "type": "integer",
        "minimum": 0,
        "description": "The report's place in the history; default: the last."
    });
    let mut fresh = flag();
    fresh["description"] = json!("Fetch again.");
    let any = json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 1_000_000,
        "description": "Or any Markdown."
    });
    let input =
        json!({ "conversationId": text(), "message": message, "fresh": fresh, "text": any });
    let output = open_object(
        join(
            texts(&["conversationId", "status"]),
            json!({ "citationCheck": { "type": "object" } }),
        ),
        &["status"],
    );
    let tool = tool(CHECK_CITATIONS, "Check citations", checks, object(input, &[]), output, asks());
    list_tool(set, tool, |set, caller, given| Box::pin(set.check_citations(caller, given)))
}

/// Returns the tool that cancels research.
fn cancel_research_tool(set: &Arc<Research>) -> ListedTool {
    let stops = "Cancels the research that runs in a conversation, and shows the conversation. Where the provider cannot \
                 be told to stop, its run may still finish and be charged.";
    let input = object(json!({ "conversationId": text() }), &["conversationId"]);
    let tool = tool(CANCEL, "Cancel research", stops.to_owned(), input, cancel_schema(), cancels());
    list_tool(set, tool, |set, caller, given| Box::pin(set.cancel(caller, given)))
}

/// Returns the tools that ask.
fn questions(set: &Arc<Research>) -> Vec<ListedTool> {
    let options = &set.options;
    let recipient = recipient(set);
    let (warning, long_warning) = (recipient.warning_text(), recipient.long_warning());
    let quick = recipient.either("the server's own documents", "a quick web search");
    let depth = recipient.either("in the server's own documents", "in depth");
    let research = research(options, depth);
    let known = "within a conversation: its earlier questions and answers are known.";
    let asking = |name: &'static str, title, description, input| {
        let tool = tool(name, title, description, input, answer(), asks());
        let is_deep = [options.set.deep_research(), options.set.followup()].contains(&name);
        list_tool(set, tool, move |set, caller, given| Box::pin(set.ask(caller, name, given)))
            .with_tasks(is_deep && options.mode != ResearchMode::Queued)
    };
    let (ask, followup) = (options.set.deep_research(), options.set.followup());
    let earlier = format!("{SEARCH_RESEARCH} finds earlier reports at no cost.");
    let (providers, stays) = match options.set {
        ResearchSet::Perplexity => (String::new(), ""),
        ResearchSet::AnyProvider => (providers(set), " The provider that began it answers."),
    };
    let mut tools = vec![
        asking(
            ask,
            "Deep research",
            format!(
                "{research}{providers} {earlier} Give full context: earlier chat is not seen. {UNTRUSTED}{long_warning}"
            ),
            question(
                &["query"],
                with_approval(set, research_options(set, "Who answers, if not the first.")),
            ),
        ),
        asking(
            followup,
            "Deep research follow-up",
            format!("{ask} {known}{stays} {earlier} {UNTRUSTED}{long_warning}"),
            question(
                &["conversationId", "query"],
                research_options(
                    set,
                    "Only if the user wants all that was said sent to another provider. What the library answered can \
                     be moved only by the user.",
                ),
            ),
        ),
    ];
    if options.set == ResearchSet::Perplexity {
        tools.push(asking(
            SEARCH,
            "Search",
            format!("Answers a question from {quick}, within 30 s. {earlier} {UNTRUSTED}{warning}"),
            question(&["query"], search_options()),
        ));
        tools.push(asking(
            SEARCH_FOLLOWUP,
            "Search follow-up",
            format!("{SEARCH} {known} {earlier} {UNTRUSTED}{warning}"),
            question(&["conversationId", "query"], search_options()),
        ));
    }
    tools
}

/// Returns the recipient of the questions. If a call can choose from several providers, it is one that is not on this
/// machine.
fn recipient(set: &Research) -> Recipient<'_> {
    let options = &set.options;
    let first = options.profiles.first();
    let mut elsewhere = options.profiles.iter().filter(|it| !it.keeps_text());
    let profile = match options.set {
        ResearchSet::Perplexity => first,
        ResearchSet::AnyProvider => elsewhere.next().or(first),
    };
    Recipient { profile, disclaimer: options.disclaimer }
}

/// Renders the available providers, and the usual cost of a question to each.
fn providers(set: &Research) -> String {
    let ask = ResearchRequest { effort: Some(Effort::Medium), ..ResearchRequest::default() };
    let request = Request::from(serde_json::to_value(ask).unwrap_or_default());
    let listed = set.options.profiles.iter().map(|profile| {
        let cost = match set.engine.expects(profile, &request).cost.amount() {
            Some(NanoUsd(0)) => "free".to_owned(),
            Some(amount) if amount < NanoUsd(10_000_000) => format!("about {amount}"),
            Some(NanoUsd(nanos)) => format!("about ${:.2}", nanos as f64 / 1e9),
            None => "cost unknown".to_owned(),
        };
        format!("{} ({cost} at medium effort)", profile.provider())
    });
    let listed: Vec<String> = listed.collect();
    match listed.as_slice() {
        [] => String::new(),
        [one] => format!(" Asks {one}."),
        several => format!(" Asks the first of: {}.", several.join(", ")),
    }
}

/// Describes deep research in this mode.
fn research(options: &ResearchOptions, depth: &str) -> String {
    match options.mode {
        ResearchMode::Blocking => format!(
            "Researches a question {depth} and returns a long report with citations. Takes minutes: set the client's \
             timeout to 180 s or more; shorter ones may fail. If the client gives up, the same call made again picks \
             the research up."
        ),
        ResearchMode::Queued => format!(
            "Queues a question for research {depth} and answers at once; read the report with {HISTORY}. Takes \
             minutes. Client timeout: 180 s or more recommended; shorter ones may fail."
        ),
        ResearchMode::Auto => format!(
            "Researches a question {depth}; answers with the report if it is there within {} s, else read it with \
             {HISTORY}. A client timeout of 180 s or more is recommended; shorter ones may fail. The same call made \
             again picks the research up.",
            options.inline_budget.as_secs()
        ),
    }
}

/// Adds the approval of the plan, if the researcher is configured (M4).
fn with_approval(set: &Research, options: Value) -> Value {
    let is_there =
        set.options.profiles.iter().any(|profile| profile.provider() == Profile::RESEARCHER);
    if set.options.set != ResearchSet::AnyProvider || !is_there {
        return options;
    }
    let mut approve = flag();
    approve["description"] =
        json!("Researcher only: the user approves the plan before it is paid.");
    join(options, json!({ "approve_plan": approve }))
}

fn research_options(set: &Research, provider_text: &str) -> Value {
    let mut effort = one_of(&["low", "medium", "high"]);
    effort["default"] = json!("medium");
    let mut fresh = flag();
    fresh["description"] = json!("Starts over and pays again.");
    let common = json!({
        "priority": priority(),
        "idempotency_key": short_text("The same key is the same job."),
        "fresh": fresh
    });
    match set.options.set {
        ResearchSet::Perplexity => join(common, json!({ "reasoning_effort": effort })),
        ResearchSet::AnyProvider => {
            let names: Vec<&str> = set.options.profiles.iter().map(Profile::provider).collect();
            let budget = json!({
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": NanoUsd::MAX_BUDGET_USD,
                "description": "What the run may cost at most. Where the provider has no cap of its own, a question \
                                that usually costs more is refused."
            });
            let mut options = common;
            if !names.is_empty() {
                options["provider"] = one_of(&names);
                options["provider"]["description"] = json!(provider_text);
            }
            join(options, json!({ "effort": effort, "budget_usd": budget }))
        }
    }
}

fn search_options() -> Value {
    let day = json!({ "type": "string", "description": "MM/DD/YYYY" });
    json!({
        "return_related_questions": flag(),
        "search_recency_filter": recency(),
        "search_domain_filter": domains("Only these, or with a leading `-` none of these."),
        "search_after_date_filter": day,
        "search_before_date_filter": day,
        "search_mode": one_of(&["web", "academic"]),
        "showThinking": flag()
    })
}

/// Returns the schema of a question with its options, perhaps in a conversation.
fn question(required: &[&str], mut properties: Value) -> Value {
    properties["query"] = query();
    if required.contains(&"conversationId") {
        properties["conversationId"] = text();
    }
    object(properties, required)
}

fn ids() -> Value {
    json!({ "type": "array", "items": text(), "minItems": 1, "maxItems": 100 })
}

fn read_input(ids: &str, schema: Value) -> Value {
    let flags = json!({ "includeSystemPrompt": flag(), "showThinking": flag() });
    object(join(flags, json!({ ids: schema })), &[ids])
}

fn list_input() -> Value {
    let status = one_of(&["pending", "in_progress", "completed", "failed", "cancelled"]);
    object(json!({ "status": status, "limit": limit(), "cursor": text() }), &[])
}

fn answer() -> Value {
    let cost = json!({
        "usd": { "type": ["number", "null"] },
        "kind": text(),
        "maybe_spent_usd": { "type": "number" }
    });
    let parts = json!({
        "usage": { "type": "object" },
        "cost": open_object(cost, &[]),
        "searchResults": { "type": "array" }
    });
    let required = ["rawResultText", "conversationId", "status"];
    let more = ["responseId", "modelUsed", "provider"];
    open_object(join(parts, join(texts(&required), texts(&more))), &required)
}

/// Returns the schema of one conversation, or of several by id.
fn history() -> Value {
    let said = ["role", "content"];
    let parts = json!({
        "messageCount": { "type": "integer" },
        "messages": { "type": "array", "items": open_object(texts(&said), &said) }
    });
    let required = ["conversationId", "createdAt", "updatedAt", "messageCount", "messages"];
    let more = texts(&["provider", "partial", "status", "statusMessage"]);
    let more = join(more, json!({ "question": question_schema() }));
    let one = json!({
        "properties": join(join(texts(&required), more), parts),
        "required": required
    });
    json!({ "type": "object", "anyOf": [one, batch()] })
}

/// Returns the schema of a conversation after a cancel, with the fields that a caller needs.
fn cancel_schema() -> Value {
    let properties = texts(&["conversationId", "status", "statusMessage"]);
    open_object(properties, &["conversationId", "status"])
}

/// Returns the schema of several conversations by id.
fn batch() -> Value {
    let part = json!({ "type": "object" });
    let parts = json!({ "conversation": part, "status": part, "progress": part, "error": part });
    json!({ "type": "object", "additionalProperties": open_object(parts, &[]) })
}

fn found_schema() -> Value {
    let names = ["conversationId", "title", "provider", "finishedAt", "passage"];
    let cost = json!({ "costUsd": { "type": ["number", "null"] } });
    let result = open_object(join(texts(&names), cost), &[&names[..], &["costUsd"]].concat());
    open_object(json!({ "results": { "type": "array", "items": result } }), &["results"])
}

fn list() -> Value {
    let conversation =
        open_object(texts(&["conversationId", "title", "status"]), &["conversationId", "title"]);
    let properties = json!({
        "conversations": { "type": "array", "items": conversation },
        "nextCursor": { "type": ["string", "null"] }
    });
    open_object(properties, &["conversations", "nextCursor"])
}
