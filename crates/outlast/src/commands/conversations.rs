//! `outlast conversations`: questions and answers, for people and for scripts.

use std::process::ExitCode;

use anyhow::Context as _;
use outlast_core::conversation::Conversation;
use outlast_core::{
    ConversationQuery, ConversationSummary, Prune, StateKind, StoreError, printable,
};
use outlast_engine::Providers;
use outlast_server::{Transcript, html_page, markdown_document};
use serde_json::{Value, json};

use super::engine::{CommandSession, with_engine};
use super::find::{self, FoundConversation};
use super::job_view::show as job_show;
use super::research::{is_stdout, writable};
use crate::cli::{
    ConversationsCommand, DeleteArgs, ExportArgs, ExportFormat, Global, ListConversationsArgs,
    PruneConversationsArgs, ShowConversationArgs,
};
use crate::error::{CommandError, CommandResult, DONE, refuse};
use crate::open_store::OpenStore;
use crate::ui::{self, LineMark};

pub(super) async fn run(global: &Global, command: ConversationsCommand) -> CommandResult {
    let config = super::load_config(global, &[])?;
    let store = match &command {
        ConversationsCommand::List(_)
        | ConversationsCommand::Show(_)
        | ConversationsCommand::Export(_) => OpenStore::to_read(&config).await?,
        ConversationsCommand::Delete(_) | ConversationsCommand::Prune(_) => {
            OpenStore::open_existing(&config).await?
        }
    };
    with_engine(global, &config, store, Providers::new(), async |session| match command {
        ConversationsCommand::List(args) => list(session, args).await,
        ConversationsCommand::Show(args) => show(session, args).await,
        ConversationsCommand::Export(args) => export(session, args).await,
        ConversationsCommand::Delete(args) => delete(session, args).await,
        ConversationsCommand::Prune(args) => prune(session, args).await,
    })
    .await
}

async fn list(session: &CommandSession<'_>, args: ListConversationsArgs) -> CommandResult {
    let states = args.state.iter().filter_map(|word| StateKind::parse(word)).collect();
    let query = ConversationQuery { states, limit: args.limit, ..ConversationQuery::default() };
    let page = session.engine.conversations(&session.config.owner, &query).await?;
    if args.json {
        let conversations: Vec<_> = page.conversations.iter().map(summary).collect();
        ui::json(&json!({ "conversations": conversations, "more": page.next.is_some() }));
        return DONE;
    }
    if page.conversations.is_empty() {
        ui::remark("No conversations.");
        return DONE;
    }
    let now = session.engine.now();
    let rows = page.conversations.iter().map(|conversation| {
        vec![
            ui::Cell::id(conversation.id.as_str()),
            ui::Cell::state(conversation.state.as_str().to_owned(), conversation.state),
            ui::Cell::plain(&ui::ago(now.since(conversation.created_at))),
            ui::Cell::plain(&conversation.turns.to_string()),
            ui::Cell::plain(&conversation.title),
        ]
    });
    ui::table(&["ID", "STATE", "AGE", "TURNS", "QUESTION"], rows.collect());
    if page.next.is_some() {
        ui::remark(&format!("Only the newest {} are shown; --limit shows more.", args.limit));
    }
    DONE
}

fn summary(conversation: &ConversationSummary) -> Value {
    json!({
        "id": conversation.id,
        "question": conversation.title,
        "state": conversation.state.as_str(),
        "turns": conversation.turns,
        "reports": conversation.reports,
        "created_at": conversation.created_at.to_string(),
        "updated_at": conversation.updated_at.to_string(),
    })
}

async fn show(session: &CommandSession<'_>, args: ShowConversationArgs) -> CommandResult {
    let (told, standing) = match find::conversation(session, &args.id).await? {
        FoundConversation::Stored(conversation) => {
            (Transcript::from_stored(&conversation), read_standing(session, &conversation).await?)
        }
        FoundConversation::Archived(archived) => (Transcript::from_archived(&archived), None),
    };
    if args.json {
        let mut shown = json!(told);
        if let Some(standing) = &standing {
            shown["progress"] = json!(standing);
        }
        ui::json(&shown);
    } else {
        print(&told, standing.as_deref());
    }
    DONE
}

/// Returns the state of an unfinished question, in the words of every interface (P4).
async fn read_standing(
    session: &CommandSession<'_>,
    conversation: &Conversation,
) -> CommandResult<Option<String>> {
    let last = conversation.last();
    if last.state.kind().is_terminal() {
        return Ok(None);
    }
    let reading = super::jobs::read(session, &last.id).await?;
    Ok(reading.map(|reading| reading.read_standing().to_string()))
}

/// Prints it for a person.
fn print(told: &Transcript, standing: Option<&str>) {
    ui::line(&told.id);
    ui::fact_styled("state", told.state.as_str(), told.state);
    ui::fact("created", &told.created_at);
    ui::fact("updated", &told.updated_at);
    ui::fact("turns", told.turns.len());
    for (number, turn) in told.turns.iter().enumerate() {
        ui::line("");
        ui::title(&format!("{}. {}", number + 1, turn.question));
        ui::facts("job", &turn.job);
        for failure in &turn.failures {
            ui::fact("failure", format_args!("{}: {}", failure.code, failure.message));
        }
        let Some(answer) = &turn.answer else {
            ui::fact_styled("state", turn.state.as_str(), turn.state);
            if number + 1 == told.turns.len() {
                ui::facts("progress", standing);
            }
            continue;
        };
        ui::line("");
        ui::report(&answer.text);
        job_show::sources(&answer.sources);
    }
}

async fn export(session: &CommandSession<'_>, args: ExportArgs) -> CommandResult {
    if let Some(path) = &args.output {
        writable(path)?;
    }
    let told = load_transcript(session, &args.id).await?;
    let text = match args.format {
        ExportFormat::Md => markdown_document(&told),
        ExportFormat::Json => ui::pretty_json(&json!(told)) + "\n",
        ExportFormat::Html => html_page(&told),
    };
    match &args.output {
        Some(path) if !is_stdout(path) => {
            let written = std::fs::write(path, printable(&text));
            written.with_context(|| format!("write {}", path.display()))?;
            ui::mark(LineMark::Good, &format!("written to {}", path.display()));
        }
        Some(_) | None => ui::text(text.trim_end_matches('\n')),
    }
    DONE
}

async fn load_transcript(session: &CommandSession<'_>, given: &str) -> CommandResult<Transcript> {
    Ok(match find::conversation(session, given).await? {
        FoundConversation::Stored(conversation) => {
            Transcript::from_stored(&conversation)
                .with_checks(&session.engine, &session.own())
                .await?
        }
        FoundConversation::Archived(archived) => Transcript::from_archived(&archived),
    })
}

/// Removes the conversations that have been unchanged for this time. A conversation that is busy by now stays.
async fn prune(session: &CommandSession<'_>, args: PruneConversationsArgs) -> CommandResult {
    let engine = &session.engine;
    let before = engine.now().before(args.older_than);
    let ended = StateKind::ALL.into_iter().filter(|state| state.is_terminal()).collect();
    let is_old = |found: &ConversationSummary| found.updated_at <= before;
    let old = find::conversations(session, ended, is_old).await?;
    let mut removed = Vec::new();
    for id in old {
        match engine.prune(&session.own(), &Prune::Conversation(id.clone())).await {
            Ok(_) => removed.push(id),
            Err(StoreError::ConversationBusy(_) | StoreError::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if args.json {
        ui::json(&json!({ "removed": removed }));
        return DONE;
    }
    removed.iter().for_each(|id| ui::line(id.as_str()));
    ui::remark(&format!("{} removed", ui::count(removed.len(), "conversation", "conversations")));
    DONE
}

async fn delete(session: &CommandSession<'_>, args: DeleteArgs) -> CommandResult {
    let conversation = match find::conversation(session, &args.id).await? {
        FoundConversation::Stored(conversation) => *conversation,
        FoundConversation::Archived(archived) => {
            let why = "the store does not know this conversation, only its files";
            let hint = format!("remove the folder {}", archived.folder.display());
            return Err(CommandError::failed(why, hint));
        }
    };
    let turns = conversation.turns().count();
    if !args.yes {
        if !ui::can_ask() {
            return refuse("there is no terminal to ask whether to delete it", "give --yes");
        }
        let title = ui::short(&Transcript::from_stored(&conversation).title, 60);
        let question =
            format!("Delete \"{title}\" ({}) for good?", ui::count(turns, "turn", "turns"));
        if !ui::confirm(&question) {
            ui::remark("Nothing was deleted.");
            return Ok(ExitCode::FAILURE);
        }
    }
    let prune = Prune::Conversation(conversation.id.clone());
    match session.engine.prune(&session.own(), &prune).await {
        Ok(pruned) => {
            if args.json {
                ui::json(&json!({ "id": conversation.id, "removed": pruned.jobs }));
            } else {
                ui::line(conversation.id.as_str());
            }
            ui::mark(LineMark::Good, "deleted");
            DONE
        }
        Err(error @ StoreError::ConversationBusy(job)) => Err(CommandError::from(error).hint(format!(
            "wait for it with `outlast jobs wait {job}`, or end it with `outlast jobs cancel {job}`"
        ))),
        Err(error) => Err(error.into()),
    }
}
