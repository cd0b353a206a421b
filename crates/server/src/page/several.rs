//! Cancel, retry and delete for several jobs that were selected in the list (I4). The jobs that do not fit the action are
//! left out, with the reason.

use axum::body::Body;
use http::StatusCode;
use maud::{Markup, html};
use outlast_core::{Job, JobId, NanoUsd, StoreError, visible};

use super::actions::{
    Deletion, STOPPING, delete_conversation, needs_word, retry_cost, retry_of_today, start_retry,
};
use super::asking::refusal;
use super::confirm::{CONFIRMED, Confirm, asks_to_share};
use super::form::Fields;
use super::layout::see_other;
use super::request::{PageRequest, PageResult, all_jobs};
use crate::text::count_noun;

/// The field that names a selected job.
pub(super) const JOB: &str = "job";
/// The field that names the action.
pub(super) const ACTION: &str = "action";
/// The maximum number of jobs, which is that of a page of the list.
const MAX_JOBS: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Cancel,
    Retry,
    Delete,
}

impl Action {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "cancel" => Self::Cancel,
            "retry" => Self::Retry,
            "delete" => Self::Delete,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Cancel => "Cancel",
            Self::Retry => "Retry",
            Self::Delete => "Delete",
        }
    }
}

/// The selected jobs, by whether the action fits them.
#[derive(Default)]
struct Selection {
    fitting: Vec<Job>,
    /// The numbers of jobs left out for each reason.
    left_out: Vec<(usize, &'static str)>,
}

/// Performs the action on the selected jobs, or asks for confirmation.
pub(super) async fn act(asked: PageRequest, body: Body) -> PageResult {
    let fields = &asked.form(body).await?;
    let Some(action) = fields.get(ACTION).and_then(Action::parse) else {
        return Err(asked.not_found());
    };
    let selection = asked.read(select(&asked, action, fields).await)?;
    if selection.fitting.is_empty() {
        let why = match selection.left_out.as_slice() {
            [] => "No job is selected.".to_owned(),
            left_out => sentences(left_out),
        };
        return Err(asked.refuse(StatusCode::BAD_REQUEST, "Nothing to do", &why, &all_jobs()));
    }
    if fields.get(CONFIRMED).is_none() {
        return Ok(confirm(&asked, action, &selection, fields).answer(&asked.visitor));
    }
    let mut failed = Vec::new();
    for job in &selection.fitting {
        if let Err(error) = act_on(&asked, action, job).await {
            failed.push(format!("\"{}\": {error}", job.new.title));
        }
    }
    match failed.is_empty() {
        true => Ok(see_other("/ui")),
        false => {
            let done = selection.fitting.len() - failed.len();
            let why =
                format!("{} done. {}", count_noun(done, "job is", "jobs are"), failed.join(" "));
            Err(asked.refuse(StatusCode::CONFLICT, "Not all is done", &why, &all_jobs()))
        }
    }
}

/// Reads the selected jobs. Jobs that were removed meanwhile, or are not the visitor's, are not among them.
async fn select(
    asked: &PageRequest,
    action: Action,
    fields: &Fields,
) -> Result<Selection, StoreError> {
    let mut selection = Selection::default();
    let mut ids: Vec<JobId> = fields.all(JOB).filter_map(|id| id.parse().ok()).collect();
    ids.dedup();
    for id in ids.iter().take(MAX_JOBS) {
        let Some(job) = asked.engine().job(&asked.visitor.own(), id).await? else { continue };
        // The effect of a retry depends on whether the run of a cancelled job has ended.
        let job = match action {
            Action::Retry => asked.engine().settle_stop(job).await?,
            Action::Cancel | Action::Delete => job,
        };
        match reason_against(asked, action, &job) {
            None => selection.add(action, job),
            Some(reason) => selection.leave_out(reason),
        }
    }
    Ok(selection)
}

impl Selection {
    fn add(&mut self, action: Action, job: Job) {
        // One deletion is enough for all questions of a conversation.
        let is_double = action == Action::Delete
            && self.fitting.iter().any(|other| other.new.conversation == job.new.conversation);
        if !is_double {
            self.fitting.push(job);
        }
    }

    fn leave_out(&mut self, reason: &'static str) {
        match self.left_out.iter_mut().find(|(_, known)| *known == reason) {
            Some((count, _)) => *count += 1,
            None => self.left_out.push((1, reason)),
        }
    }
}

/// Returns the reason why the action does not fit the job; `None` if it fits.
fn reason_against(asked: &PageRequest, action: Action, job: &Job) -> Option<&'static str> {
    let has_ended = job.state.kind().is_terminal();
    match action {
        Action::Cancel => has_ended.then_some("ended already"),
        Action::Delete if job.new.conversation.is_none() => {
            Some("without a conversation: goes by itself when its retention ends")
        }
        Action::Delete => (!has_ended).then_some("not ended: cancel first"),
        Action::Retry if super::timeline::retry_text(job).is_none() => {
            Some("nothing to retry: has a report, or has not ended")
        }
        Action::Retry if needs_word(job) => Some(
            "may be paid for twice, --again: retry it on its page, which asks for your consent",
        ),
        Action::Retry => asks_to_share(&retry_of_today(asked, job), &Fields::default())
            .map(|_| "would send text from your local documents: retry it on its page"),
    }
}

fn sentences(left_out: &[(usize, &'static str)]) -> String {
    let sentence = |(count, reason): &(usize, &str)| {
        format!("Left out: {} ({reason}).", count_noun(*count, "job", "jobs"))
    };
    left_out.iter().map(sentence).collect::<Vec<_>>().join(" ")
}

fn confirm<'a>(
    asked: &PageRequest,
    action: Action,
    selection: &Selection,
    fields: &'a Fields,
) -> Confirm<'a> {
    let count = selection.fitting.len();
    let effect = match action {
        Action::Cancel => {
            "They end at once. What their runs have cost so far stays paid, and there are no reports."
                .to_owned()
        }
        Action::Retry => sum(asked, &selection.fitting),
        Action::Delete => {
            "These and all other questions and reports of their conversations go for good. What was spent stays in the ledger."
                .to_owned()
        }
    };
    let (title, button) = match action {
        Action::Cancel => ("Cancel these jobs?", "Cancel the jobs"),
        Action::Retry => ("Retry these jobs?", "Retry them"),
        Action::Delete => ("Delete these conversations?", "Delete them"),
    };
    let left_out = sentences(&selection.left_out);
    Confirm {
        title,
        about: titles(asked, action, &selection.fitting),
        text: format!(
            "{} {}: {effect} {left_out}",
            action.name(),
            count_noun(count, "job", "jobs")
        )
        .trim_end()
        .to_owned(),
        button,
        needs_word: false,
        shares_with: None,
        back: "/ui".to_owned(),
        fields,
    }
}

fn titles(asked: &PageRequest, action: Action, jobs: &[Job]) -> Markup {
    let price = |job: &Job| match retry_cost(asked, job).amount() {
        Some(NanoUsd(0)) => "free".to_owned(),
        Some(amount) => format!("usually {amount}"),
        None => "price not known beforehand".to_owned(),
    };
    html! {
        ul .chosen {
            @for job in jobs {
                li {
                    a href={ "/ui/jobs/" (job.id.to_string()) } dir="auto" { (visible(&job.new.title)) }
                    @if action == Action::Retry { " " span .soft { (price(job)) } }
                }
            }
        }
    }
}

/// Describes what the retries cost together.
fn sum(asked: &PageRequest, jobs: &[Job]) -> String {
    let costs: Vec<Option<NanoUsd>> =
        jobs.iter().map(|job| retry_cost(asked, job).amount()).collect();
    let known: NanoUsd = costs.iter().flatten().copied().sum();
    match costs.iter().filter(|cost| cost.is_none()).count() {
        0 => format!("{known} together, usually."),
        unknown => format!(
            "{known} together, usually; the price of {} is not known beforehand.",
            count_noun(unknown, "job", "jobs")
        ),
    }
}

async fn act_on(asked: &PageRequest, action: Action, job: &Job) -> Result<(), String> {
    let in_words = |error: StoreError| refusal(&error);
    match action {
        Action::Cancel => {
            asked.engine().cancel(&asked.visitor.own(), &job.id).await.map_err(in_words)?;
        }
        Action::Retry => {
            let new = retry_of_today(asked, job);
            start_retry(asked, job, new, false).await.map_err(in_words)?;
        }
        Action::Delete => {
            let Some(conversation) = &job.new.conversation else { return Ok(()) };
            match delete_conversation(asked, conversation).await.map_err(in_words)? {
                Deletion::Whole => {}
                Deletion::ExceptStopping => return Err(STOPPING.to_owned()),
            }
        }
    }
    Ok(())
}
