//! The names of the tools, each defined once, by tool set.

/// Tool set `research`.
pub(crate) mod research {
    pub(crate) const DEEP_RESEARCH: &str = "perplexity_deep_research";
    pub(crate) const DEEP_RESEARCH_FOLLOWUP: &str = "perplexity_deep_research_followup";
    pub(crate) const SEARCH: &str = "perplexity_search";
    pub(crate) const SEARCH_FOLLOWUP: &str = "perplexity_search_followup";
    pub(crate) const HISTORY: &str = "get_conversation_history";
    pub(crate) const HISTORIES: &str = "get_conversation_histories";
    pub(crate) const AWAIT: &str = "await_conversation_histories";
    pub(crate) const LIST: &str = "list_conversations";
    pub(crate) const SEARCH_RESEARCH: &str = "search_research";
    pub(crate) const CHECK_CITATIONS: &str = "check_citations";
    pub(crate) const CANCEL: &str = "cancel_research";
}

/// Tool set `deep-research`: the tools that ask. Its other tools are those of `research`.
pub(crate) mod deep_research {
    pub(crate) const DEEP_RESEARCH: &str = "deep_research";
    pub(crate) const DEEP_RESEARCH_FOLLOWUP: &str = "deep_research_followup";
}

/// Tool set `research-jobs`.
pub(crate) mod research_jobs {
    pub(crate) const START: &str = "perplexity_research_start";
    pub(crate) const POLL: &str = "perplexity_research_poll";
    pub(crate) const CANCEL: &str = "perplexity_research_cancel";
}

/// Tool set `perplexity`; also the names of its jobs' workflows.
pub(crate) mod perplexity {
    pub(crate) const ASK: &str = "perplexity_ask";
    pub(crate) const REASON: &str = "perplexity_reason";
    pub(crate) const RESEARCH: &str = "perplexity_research";
    pub(crate) const SEARCH: &str = "perplexity_search";
    pub(crate) const ALL: [&str; 4] = [ASK, REASON, RESEARCH, SEARCH];
}

/// Tool set `jobs`.
pub(crate) mod jobs {
    pub(crate) const START: &str = "start_job";
    pub(crate) const GET: &str = "get_job";
    pub(crate) const CANCEL: &str = "cancel_job";
    pub(crate) const LIST: &str = "list_jobs";
    pub(crate) const ALL: [&str; 4] = [START, GET, CANCEL, LIST];

    /// The prefix of every tool that starts a workflow.
    pub(crate) const STARTS: &str = "start_";

    /// Returns the name of the tool that starts only this workflow.
    pub(crate) fn start_one(workflow: &str) -> String {
        format!("{STARTS}{workflow}")
    }
}

/// Returns true if the tool starts, changes and buys nothing.
pub(crate) fn only_reads(tool: &str) -> bool {
    let reads = [
        research::HISTORY,
        research::HISTORIES,
        research::AWAIT,
        research::LIST,
        research::SEARCH_RESEARCH,
        research_jobs::POLL,
        jobs::GET,
        jobs::LIST,
    ];
    reads.contains(&tool)
}

/// Returns true if the tool may answer that a job was started.
pub(crate) fn starts(tool: &str) -> bool {
    tool == research_jobs::START
        || tool.starts_with(jobs::STARTS)
        || [research::DEEP_RESEARCH, research::DEEP_RESEARCH_FOLLOWUP].contains(&tool)
        || [deep_research::DEEP_RESEARCH, deep_research::DEEP_RESEARCH_FOLLOWUP].contains(&tool)
}
