//! The tools as clients and models read them. Descriptions earn their tokens: they are sent with every conversation.

mod input;
mod output;

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value};

use super::super::recipient::Recipient;
use super::super::schema::object;
use super::{
    AWAIT, DEEP_RESEARCH, DEEP_RESEARCH_FOLLOWUP, HISTORIES, HISTORY, LIST, ResearchMode,
    ResearchOptions, SEARCH, SEARCH_FOLLOWUP,
};

pub(super) fn tools(options: &ResearchOptions) -> Vec<Tool> {
    let recipient = Recipient { profile: &options.profile, disclaimer: options.disclaimer };
    let (warning, long_warning) = (recipient.warning(), recipient.long_warning());
    let depth = recipient.either("in the server's own documents", "in depth");
    let quick = recipient.either("the server's own documents", "a quick web search");
    let research = match options.mode {
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
    };
    let mut tools = vec![
        asking(
            DEEP_RESEARCH,
            "Deep research",
            &format!("{research} Give full context: earlier chat is not seen.{long_warning}"),
            input::research(input::In::New),
        ),
        asking(
            DEEP_RESEARCH_FOLLOWUP,
            "Deep research follow-up",
            &format!(
                "{DEEP_RESEARCH} within a conversation: its earlier questions and answers are known.{long_warning}"
            ),
            input::research(input::In::Conversation),
        ),
        asking(
            SEARCH,
            "Search",
            &format!("Answers a question from {quick}, within 30 s.{warning}"),
            input::search(input::In::New),
        ),
        asking(
            SEARCH_FOLLOWUP,
            "Search follow-up",
            &format!(
                "{SEARCH} within a conversation: its earlier questions and answers are known.{warning}"
            ),
            input::search(input::In::Conversation),
        ),
        reading(
            HISTORY,
            "Conversation history",
            "Where a conversation stands and all that was said in it, the report included; an array of ids reads \
             several.",
            input::history(),
            output::history(),
        ),
        reading(
            HISTORIES,
            "Conversation histories",
            "Several conversations at once.",
            input::histories(),
            output::batch(),
        ),
    ];
    if options.mode != ResearchMode::Blocking {
        let budget = options.inline_budget.as_secs();
        tools.push(reading(
            AWAIT,
            "Await conversations",
            &format!(
                "Waits until all these conversations have ended; without a progress token {budget} s at most. \
                 Clients cut long calls, often after 60 s: call again, the jobs go on."
            ),
            input::histories(),
            output::batch(),
        ));
    }
    tools.push(reading(
        LIST,
        "List conversations",
        "Your conversations, newest first.",
        input::list(),
        output::list(),
    ));
    tools
}

fn asking(name: &'static str, title: &str, description: &str, input: Map<String, Value>) -> Tool {
    let annotations = ToolAnnotations::new().read_only(false).destructive(false).open_world(true);
    tool(name, title, description, input, output::answer(), annotations)
}

fn reading(
    name: &'static str,
    title: &str,
    description: &str,
    input: Map<String, Value>,
    output: Map<String, Value>,
) -> Tool {
    let annotations = ToolAnnotations::new().read_only(true).idempotent(true).open_world(false);
    tool(name, title, description, input, output, annotations)
}

fn tool(
    name: &'static str,
    title: &str,
    description: &str,
    input: Map<String, Value>,
    output: Map<String, Value>,
    annotations: ToolAnnotations,
) -> Tool {
    let mut tool = Tool::new(name, description.to_owned(), Arc::new(input));
    tool.title = Some(title.to_owned());
    tool.output_schema = Some(Arc::new(output));
    tool.annotations = Some(annotations);
    tool
}
