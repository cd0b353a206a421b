//! The explanation of every error code. docs/errors.md is generated from this table.

/// Codes that appear in the same place.
#[cfg_attr(not(test), expect(dead_code, reason = "the documentation alone has titles"))]
pub(super) struct CodeGroup {
    pub(super) title: &'static str,
    /// A sentence that is true for all of them; empty if there is none.
    pub(super) about: &'static str,
    pub(super) codes: &'static [Explanation],
}

/// The explanation of a code, in Markdown.
pub(super) struct Explanation {
    pub(super) code: &'static str,
    pub(super) meaning: &'static str,
    /// The consequence for the user's money.
    pub(super) money: &'static str,
    /// The next step.
    pub(super) next: &'static str,
}

pub(super) const GROUPS: [CodeGroup; 3] = [
    CodeGroup { title: "Jobs that ended without a result", about: "", codes: FAILURES },
    CodeGroup {
        title: "Refused calls",
        about: "Nothing was started, so nothing was paid for, unless the entry says otherwise.",
        codes: REFUSALS,
    },
    CodeGroup {
        title: "Refused HTTP requests",
        about: "The request did not reach a tool, so it cost nothing.",
        codes: HTTP_REFUSALS,
    },
];

const FAILURES: &[Explanation] = &[
    Explanation {
        code: "SUBMIT_UNKNOWN",
        meaning: "It is unknown whether the provider accepted the question.\n\
              outlast sent it and got no usable answer: the server crashed, the connection broke, the time ran out, or a gateway answered (HTTP 408, 502, 504, 520 to 524, or any status that is not a refusal).\n\
              outlast did not send it again. With `PERPLEXITY_API=sonar`, it first repeated the request under the same idempotency key.\n\
              A crash in the middle of a command or tool of yours, and unfinished paid work in a restored backup, end with this code too ([backup.md](backup.md#restore)).\n\
              Not retryable if a research provider may have been paid; retryable for a command or tool of yours.",
        money: "perhaps.",
        next: "check your account at the provider if the amount matters.\n\
              To start over, run `outlast jobs retry ID --again`, or ask again with a new `idempotency_key` or with `fresh: true`. This may pay a second time, unless the provider honours idempotency keys.\n\
              The same research call returns this error for 30 minutes and sends nothing.\n\
              If a workflow can safely run twice, set `rerun_after_crash`: [workflows.md](workflows.md).",
    },
    Explanation {
        code: "RUN_LOST",
        meaning: r#"The provider accepted the question, and no longer knows its run.
It answered "not found" (HTTP 404) for five minutes whenever outlast asked about the run.
It may have been paid for, so outlast did not start another.
A workflow whose server no longer knows its task ends with this code too."#,
        money: "perhaps: the provider accepted the run.",
        next: "check your account at the provider; `outlast jobs show ID` has the run's id.\n\
              To start over, run `outlast jobs retry ID --again`, or ask again with a new `idempotency_key` or with `fresh: true`. This may pay a second time.\n\
              The same research call returns this error for 30 minutes and sends nothing.",
    },
    Explanation {
        code: "TIMEOUT",
        meaning: "An attempt or the whole job took longer than its limit.\n\
              The limits are `PERPLEXITY_POLLING_TIMEOUT_MS`, `PERPLEXITY_ASYNC_MAX_WAIT_MS` and the `timeout` of a workflow.\n\
              After an attempt that timed out, the next attempt resumes the same run.\n\
              A quick search without an answer within 30 s, and an HTTP request whose body took longer than 30 s (status 408), end with this code too.\n\
              Retryable. It is not if the answer says that the provider's run may still finish, and not that the same call resumes it.",
        money: "probably: the provider's run, or the search, may be charged. An HTTP request costs nothing.",
        next: "for a search, repeat the call: it returns the answer if there is one by then.\n\
              For a job, ask for less or raise the limit, then run `outlast jobs retry ID`: it resumes the run if that may still finish.",
    },
    Explanation {
        code: "NOT_ANSWERED",
        meaning: "The job asked a question, and nobody answered it before its deadline.\n\
              The question had no default answer. An approval has one: no, which cancels the job.\n\
              Retryable.",
        money: "none for the question. What the job did before it is paid.",
        next: "start it again with `outlast jobs retry ID`, and answer with `outlast jobs answer ID TEXT`, at the page or in your client: [questions.md](questions.md).",
    },
    Explanation {
        code: "EXECUTION_ERROR",
        meaning: "The question was rejected, or its run failed; or your command or tool failed.\n\
              A run that failed is started again up to `PERPLEXITY_MAX_JOB_RETRIES` times. A rejected question, a run that somebody stopped at the provider, and an answer over 32 MiB fail at once.\n\
              A held call that its owner cancelled has this code too.",
        money: "none for a rejected question (HTTP 400, 413, 422). A run that failed after it had begun may be charged.",
        next: "read the sentence; `outlast jobs show ID` has the provider's words. Change the question or its options, or fix the command.",
    },
    Explanation {
        code: "RATE_LIMITED",
        meaning: "The provider asks for fewer requests, and all attempts are used up.\n\
              Over HTTP (status 429): one owner made more than `OUTLAST_RATE_PER_MINUTE` requests, or sent too many wrong tokens. Retryable.",
        money: "none; the request was refused.",
        next: "wait for the time in `Retry-After` or `retry_after_seconds`. If it happens often, lower `OUTLAST_CONCURRENCY`.",
    },
    Explanation {
        code: "SERVICE_UNAVAILABLE",
        meaning: "The provider, the job store or this server is not available at the moment.\n\
              The provider is down or unreachable and all attempts are used up, the store does not answer, or the server is shutting down (HTTP status 503).\n\
              Retryable. If the store did not confirm the call, it is not: the job may have been stored, and the sentence and `job_id` in `outlast/error` name it.",
        money: "none, except for such a job.",
        next: "if the call was not confirmed, look for its job first (`outlast jobs show ID`). Otherwise try again; after a server shut down, the same call continues where it was.\n\
              If the error stays, `outlast doctor` tests the network, the address and the proxy.",
    },
    Explanation {
        code: "UNAUTHORIZED",
        meaning: "The provider rejects the API key. Over HTTP (status 401): this server rejects the token.",
        money: "none.",
        next: "check the variable that the sentence names in the environment of the *server*, which the client sets, not your shell. `outlast config show` says where its value comes from.\n\
              For tokens, see [http.md](http.md#who-may-ask).",
    },
    Explanation {
        code: "QUOTA_EXHAUSTED",
        meaning: "The account at the provider has no credit left.",
        money: "none for a refused question. A run that was under way may be charged; the answer says so.",
        next: "add credit or set another key, then run `outlast jobs retry ID`. A run that was under way can only be resumed with its own key.",
    },
    Explanation {
        code: "ENDPOINT_RETIRED",
        meaning: "The provider no longer offers this endpoint (`PERPLEXITY_API=sonar`).",
        money: "none.",
        next: "set `PERPLEXITY_API=agent`, or remove the variable: `agent` is the default.",
    },
    Explanation {
        code: "INTERNAL_ERROR",
        meaning: "A defect in outlast. Over HTTP with status 500.",
        money: "perhaps, if one of your jobs was running: `outlast jobs show ID` says whether its run had begun.",
        next: "please report the details, which are in the log on standard error.",
    },
    Explanation {
        code: "CANCELLED",
        meaning: "The owner cancelled the job. outlast stops the provider's run if the provider allows it, and the answer says what it saw of the run ([vendors/cancel.md](vendors/cancel.md)).\n\
              If the question was being sent at that moment, a run may have begun: outlast stops it once the provider has returned its id, unless the server crashes before that.",
        money: "what the run had used so far, or all of it if the provider did not stop it.",
        next: "nothing. `outlast jobs retry ID` asks again; if the run has completed or is still going, it fetches that report and sends nothing.",
    },
    Explanation {
        code: "JOB_EXPIRED",
        meaning: "There is no job with this id, or no longer (`get_job`, `cancel_job`). Finished jobs of workflows are kept for `OUTLAST_JOB_TTL_MS`.",
        money: "none for this call.",
        next: "check the id; `list_jobs` lists your jobs.",
    },
    Explanation {
        code: "NOT_FOUND",
        meaning: "There is no research job, or conversation of a batch, with this id. Research jobs are kept for `PERPLEXITY_RESEARCH_JOB_TTL_MS`. Over HTTP (status 404): no such route.",
        money: "none for this call.",
        next: "check the id; `outlast jobs list` lists your jobs.",
    },
];

const REFUSALS: &[Explanation] = &[
    Explanation {
        code: "VALIDATION_ERROR",
        meaning: "An argument is missing, unknown or not allowed. The sentence names it and says what is allowed.",
        money: "none.",
        next: "correct the argument and call again.",
    },
    Explanation {
        code: "CONVERSATION_NOT_FOUND",
        meaning: "You have no conversation with this id.",
        money: "none.",
        next: "use `list_conversations`, or `outlast conversations list`. A call without an id starts a new conversation.",
    },
    Explanation {
        code: "CONVERSATION_CORRUPTED",
        meaning: "The files that hold this conversation cannot be read. An older server wrote them, and the store does not have the conversation.",
        money: "none.",
        next: "repair or remove its folder in `conversation-logs`.",
    },
    Explanation {
        code: "INVALID_ID",
        meaning: "In a batch: this cannot be the id of a conversation. The other ids of the batch are answered.",
        money: "none.",
        next: "copy the id (8 to 64 of `A-Z a-z 0-9 _ -`) from the answer that started the conversation.",
    },
    Explanation {
        code: "RETRIEVAL_ERROR",
        meaning: "In a batch: this conversation cannot be read at the moment. The other ids of the batch are answered.",
        money: "none.",
        next: "request it alone with `get_conversation_history`, which gives the reason.",
    },
    Explanation {
        code: "JOB_IN_PROGRESS",
        meaning: "The last question of this conversation has not ended. A conversation answers one at a time. Retryable.",
        money: "none.",
        next: "wait for it (`get_conversation_history`, or `outlast jobs wait ID`) and ask then, or start another conversation.",
    },
    Explanation {
        code: "IDEMPOTENCY_CONFLICT",
        meaning: "This `idempotency_key` names a different request of the last day.",
        money: "none.",
        next: "use a new key for a new request, and the same arguments for the same request.",
    },
    Explanation {
        code: "TOO_MANY_JOBS",
        meaning: "You have `OUTLAST_MAX_JOBS_PER_OWNER` unfinished jobs. Retryable.",
        money: "none.",
        next: "wait for some of them, or cancel what you no longer need: `outlast jobs list --state queued`.",
    },
    Explanation {
        code: "BUDGET_EXCEEDED",
        meaning: "The question may cost more than is allowed.\n\
              It may exceed its own budget, `OUTLAST_MAX_USD_PER_JOB`, or the rest of `OUTLAST_MAX_USD_PER_DAY`. The sentence has the amounts.\n\
              If a limit is set, a question with an unknown cost is refused too, for example with a model that is not in the price table.\n\
              If you can ask again the next day (UTC), the answer has the number of seconds until then.",
        money: "none: the question was refused before anything was sent.",
        next: "use a lower effort, a higher budget or limit, or wait for the next day; `outlast spend` has the sums ([spending.md](spending.md)).",
    },
    Explanation {
        code: "TOO_MANY_POLLS",
        meaning: "Too many calls are waiting for jobs. The limits are `OUTLAST_MAX_POLLS`, and `OUTLAST_MAX_POLLS_PER_JOB` for one job. Several owners share the places. Retryable.",
        money: "none; the job continues.",
        next: "poll again in a few seconds, with fewer calls at a time.",
    },
    Explanation {
        code: "TOO_MANY_CALLS",
        meaning: "More than 1,000 requests are unanswered on one stdio connection. This is the `data.code` of JSON-RPC error -32000; no tool was called.",
        money: "none.",
        next: "send the request again when some of the others are answered.",
    },
    Explanation {
        code: "STORE_FULL",
        meaning: "The disk is full, or your share of the job store is. Your questions and results may use `OUTLAST_MAX_BYTES_PER_OWNER`; the error says which of the two is full. Finished jobs can still be read. Retryable.",
        money: "none. Runs under way continue and are stored when there is room.",
        next: "free space on the disk; no restart is needed ([faults.md](faults.md#the-disk-is-full)).\n\
              For your own quota: `outlast conversations delete ID`, `outlast jobs prune`, or a higher limit.",
    },
    Explanation {
        code: "STORE_CORRUPT",
        meaning: "The database is damaged. Its file may have been deleted or replaced under a running server.",
        money: "none for the refused call. Runs under way at the provider continue, and are charged.",
        next: "stop the servers and run `outlast store restore FILE --force` with your last backup: [backup.md](backup.md#repair-a-damaged-store).",
    },
    Explanation {
        code: "CONFIGURATION_ERROR",
        meaning: "The configuration does not allow this call; the error says why.\n\
              A newer version of outlast wrote the job store, no provider or not the one of the conversation is configured, or the vendor does not offer the configured model.",
        money: "none.",
        next: "update outlast, or use another store (`--store`).\n\
              For a conversation, configure its provider and restart outlast, or name another `provider` (`--provider`), which receives the earlier messages.\n\
              For a model, set one of those that the sentence lists; `outlast doctor` lists them too.",
    },
];

const HTTP_REFUSALS: &[Explanation] = &[
    Explanation {
        code: "BAD_HOST",
        meaning: "The request names a host that this server does not serve: 421.",
        money: "none.",
        next: "use the address that the server was started with, or add the name to `OUTLAST_ALLOWED_HOSTS`.",
    },
    Explanation {
        code: "BAD_ORIGIN",
        meaning: "The request comes from a web page whose origin is not allowed: 403.",
        money: "none.",
        next: "if you trust the origin, add it to `OUTLAST_ALLOWED_ORIGINS`.",
    },
    Explanation {
        code: "INSUFFICIENT_SCOPE",
        meaning: "The access token lacks the scope that the request needs: 403. WWW-Authenticate names it.",
        money: "none.",
        next: "sign in again with the scope; `outlast:read` reads, `outlast:run` starts and cancels, `outlast:admin` reads the metrics.",
    },
    Explanation {
        code: "CROSS_SITE",
        meaning: "Another site, or a program, tried to change a job on the page: 403. Nothing was done.",
        money: "none.",
        next: "open the page itself and use its buttons; programs use MCP at `/mcp`, or the command line.",
    },
    Explanation {
        code: "BAD_REQUEST",
        meaning: "The request is not a valid MCP request, or its body ended early: 400.",
        money: "none.",
        next: "send the whole request; the message says what is wrong.",
    },
    Explanation {
        code: "BAD_MESSAGE",
        meaning: "The body is not JSON: 400. JSON that is not a valid MCP request, such as a batch, gets a JSON-RPC error instead.",
        money: "none.",
        next: "send one message in each POST.",
    },
    Explanation {
        code: "METHOD_NOT_ALLOWED",
        meaning: "`/mcp` accepts only `POST`, `GET` and `DELETE`, other routes only `GET`: 405.",
        money: "none.",
        next: "use a method that the header `Allow` names.",
    },
    Explanation {
        code: "NOT_ACCEPTABLE",
        meaning: "The client does not accept the content type of the answer: 406.",
        money: "none.",
        next: "send `Accept: application/json, text/event-stream`.",
    },
    Explanation {
        code: "UNSUPPORTED_MEDIA_TYPE",
        meaning: "The body is not plain JSON: 415.",
        money: "none.",
        next: "send `Content-Type: application/json` and no `Content-Encoding`.",
    },
    Explanation {
        code: "SESSION_NOT_FOUND",
        meaning: "The session does not exist, or no longer: 404. It may have been ended with `DELETE`, or belong to another owner.",
        money: "none. Jobs belong to their owner and not to a session; they continue.",
        next: "send `initialize` again, and poll the same ids.",
    },
    Explanation {
        code: "TOO_MANY_SESSIONS",
        meaning: "All sessions are in use: 503.",
        money: "none.",
        next: "end some with `DELETE`, or try again after `Retry-After`.",
    },
    Explanation {
        code: "TOO_MANY_CONNECTIONS",
        meaning: "You have too many open connections: 503. Several owners share the connections.",
        money: "none; jobs continue without a connection.",
        next: "close some, or try again after `Retry-After`.",
    },
    Explanation {
        code: "TOO_BUSY",
        meaning: "The server is receiving more data at the moment than it accepts: 503.",
        money: "none: nothing of the request was done.",
        next: "send it again after `Retry-After`.",
    },
    Explanation {
        code: "TOO_LARGE",
        meaning: "The body is larger than 4 MiB: 413.",
        money: "none.",
        next: "send less.",
    },
];
