//! What the help of every command ends with. A test parses each line.

pub(super) const RESEARCH: &str = "\
Examples:
  outlast research --library ~/notes \"What did we decide about heat pumps?\"
  outlast research \"Heat pumps in cold climates?\" --effort high -o report.md
  outlast research - --effort low < question.txt
  outlast research \"And what do they cost?\" --follow-up 9a8b7c6d
  outlast research \"Heat pumps in cold climates?\" --detach";

pub(super) const RUN: &str = "\
Examples:
  outlast run nightly-audit
  outlast run nightly-audit --arguments '{\"since\":\"2026-01-01\"}' --detach
  git diff | outlast run review - --json";

pub(super) const CALL: &str = "\
Examples:
  outlast call -- outlast serve
  outlast call --tool list_conversations -- outlast serve
  outlast call --tool perplexity_deep_research --args '{\"query\":\"Heat pumps?\"}' \\
    --timeout 2m --reset-timeout-on-progress --max-total-timeout 3h -- outlast serve
  outlast call --url https://example.com/mcp --bearer-env TOKEN --tool search --args '{\"q\":\"rust\"}' --json";

pub(super) const SERVE: &str = "\
Examples:
  outlast serve                              # for a client that starts it, over a pipe
  outlast serve --http 127.0.0.1:8080        # for many clients, each with a token";

pub(super) const WORKER: &str = "\
Examples:
  outlast worker                             # until Ctrl-C
  outlast worker --until-idle --concurrency 2";

pub(super) const DOCTOR: &str = "\
Examples:
  outlast doctor
  outlast doctor --json";

pub(super) const INIT: &str = "\
Examples:
  outlast init claude-code
  outlast init cursor --dry-run              # show the change, make none
  outlast init claude-code --remove";

pub(super) const CONFIG_SHOW: &str = "\
Examples:
  outlast config show
  outlast config show --json --config ./outlast.toml";

pub(super) const COMPLETIONS: &str = "\
Examples:
  outlast completions bash
  outlast completions zsh";

pub(super) const MAN: &str = "\
Examples:
  outlast man | man -l -                     # read it
  outlast man ~/.local/share/man/man1        # a page for every command, where `man` finds them";

pub(super) const EXPLAIN: &str = "\
Examples:
  outlast explain SUBMIT_UNKNOWN
  outlast explain                            # every code";

pub(super) const VERSION: &str = "\
Examples:
  outlast version";

pub(super) const DEMO: &str = "\
Examples:
  outlast demo";

pub(super) const STORE_BACKUP: &str = "\
Examples:
  outlast store backup ~/outlast-monday.db";

pub(super) const STORE_RESTORE: &str = "\
Examples:
  outlast store restore ~/outlast-monday.db --force
  outlast store restore --in-place           # after the file was copied back by hand";

pub(super) const STORE_COPY: &str = "\
Examples:
  outlast store copy sqlite:outlast.db postgres://outlast@db.example/outlast
  outlast store copy sqlite:outlast.db -     # to the store that OUTLAST_STORE names";

pub(super) const STORE_MIGRATE: &str = "\
Examples:
  outlast store migrate
  outlast store migrate --store postgres://admin@db.example/outlast";

pub(super) const STORE_CHECK: &str = "\
Examples:
  outlast store check
  outlast store check --store sqlite:backup.db";

pub(super) const JOBS_LIST: &str = "\
Examples:
  outlast jobs list --state queued --state running
  outlast jobs list --search \"heat pumps\" --json";

pub(super) const JOBS_SHOW: &str = "\
Examples:
  outlast jobs show 0f8fad5b
  outlast jobs show 0f8fad5b --json";

pub(super) const JOBS_WATCH: &str = "\
Examples:
  outlast jobs watch                         # all that are unfinished
  outlast jobs watch 0f8fad5b";

pub(super) const JOBS_WAIT: &str = "\
Examples:
  outlast jobs wait 0f8fad5b 1c2d3e4f --timeout 10m";

pub(super) const JOBS_CANCEL: &str = "\
Examples:
  outlast jobs cancel 0f8fad5b";

pub(super) const JOBS_RETRY: &str = "\
Examples:
  outlast jobs retry 0f8fad5b";

pub(super) const JOBS_PRUNE: &str = "\
Examples:
  outlast jobs prune                         # those whose retention is over
  outlast jobs prune --older-than 7d";

pub(super) const CONVERSATIONS_LIST: &str = "\
Examples:
  outlast conversations list
  outlast conversations list --state failed --json";

pub(super) const CONVERSATIONS_SHOW: &str = "\
Examples:
  outlast conversations show 9a8b7c6d";

pub(super) const CONVERSATIONS_EXPORT: &str = "\
Examples:
  outlast conversations export 9a8b7c6d > talk.md
  outlast conversations export 9a8b7c6d --format html -o talk.html";

pub(super) const CONVERSATIONS_DELETE: &str = "\
Examples:
  outlast conversations delete 9a8b7c6d
  outlast conversations delete 9a8b7c6d --yes";

pub(super) const CONVERSATIONS_PRUNE: &str = "\
Examples:
  outlast conversations prune --older-than 90d";
