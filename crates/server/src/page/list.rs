//! Jobs: counts by state, filters that are part of the address, and one page of the list (I2).

use axum::extract::Query;
use maud::{Markup, html};
use outlast_core::{
    Code, Cursor, JobQuery, OwnerId, Profile, Scope, StateCount, StateKind, StoreError, Summary,
    Timestamp, visible,
};

use super::form::{Fields, address};
use super::layout::{self, Tab, View};
use super::options::PageView;
use super::request::{PageRequest, PageResult};
use super::session::Visitor;
use super::{several, spend};
use crate::text::{count_noun, took};

/// The number of jobs on a page of the list.
const PAGE: u32 = 50;
/// The number at which counting stops.
const MAX_COUNTED: u32 = 1_000;
/// The minimum number of hexadecimal digits of a search for an id.
const MIN_ID_DIGITS: usize = 6;

/// The providers that can have run a job.
const PROVIDERS: [&str; 7] = [
    Profile::PERPLEXITY,
    "openai",
    "anthropic",
    "gemini",
    Profile::RESEARCHER,
    Profile::LIBRARY,
    Profile::WORKFLOW,
];

/// The filters in the address of the list.
struct Filters {
    state: Option<StateKind>,
    text: String,
    provider: String,
    code: Option<Code>,
    owner: String,
    after: Option<u64>,
}

impl Filters {
    fn of(fields: &Fields, visitor: &Visitor) -> Self {
        let get = |name| fields.get(name).unwrap_or_default().to_owned();
        let owner = match visitor.view {
            PageView::Own => String::new(),
            PageView::AllOwners => get("owner"),
        };
        Self {
            state: fields.get("state").and_then(StateKind::parse),
            text: get("q"),
            provider: get("provider"),
            code: fields.get("code").and_then(Code::parse),
            owner,
            after: fields.get("after").and_then(|after| after.parse().ok()),
        }
    }

    fn scope(&self, visitor: &Visitor) -> Scope {
        match self.owner.as_str() {
            "" => visitor.scope(),
            owner => Scope::Owner(OwnerId::new(owner)),
        }
    }

    fn query(&self) -> JobQuery {
        let is_id = self.text.len() >= MIN_ID_DIGITS
            && self.text.bytes().all(|byte| byte.is_ascii_hexdigit())
            && self.text.bytes().any(|byte| byte.is_ascii_digit());
        let text = Some(self.text.clone()).filter(|text| !text.is_empty());
        // The database finds failed jobs among all jobs, and the code among those.
        let state = self.state.or(self.code.map(|_| StateKind::Failed));
        JobQuery {
            states: state.into_iter().collect(),
            code: self.code,
            words: text.clone().filter(|_| !is_id),
            id_prefix: text.filter(|_| is_id).map(|text| text.to_lowercase()),
            provider: Some(self.provider.clone()).filter(|provider| !provider.is_empty()),
            limit: PAGE,
            after: self.after.map(Cursor),
            ..JobQuery::default()
        }
    }

    fn address(&self, state: Option<StateKind>, after: Option<u64>) -> String {
        let after = after.map(|after| after.to_string()).unwrap_or_default();
        address(
            "/ui",
            &[
                ("state", state.map_or("", StateKind::as_str)),
                ("q", &self.text),
                ("provider", &self.provider),
                ("code", self.code.map_or("", Code::as_str)),
                ("owner", &self.owner),
                ("after", &after),
            ],
        )
    }

    fn is_narrow(&self) -> bool {
        self.state.is_some()
            || self.code.is_some()
            || [&self.text, &self.provider, &self.owner].iter().any(|text| !text.is_empty())
    }
}

pub(super) async fn view(asked: PageRequest, Query(fields): Query<Fields>) -> PageResult {
    let body = asked.read(body(&asked, &fields).await)?;
    let live = Some("/ui/events".to_owned());
    Ok(View { title: "Jobs", tab: Tab::Jobs, live, body }.answer(&asked.visitor))
}

async fn body(asked: &PageRequest, fields: &Fields) -> Result<Markup, StoreError> {
    let (engine, visitor) = (asked.engine(), &asked.visitor);
    let filters = Filters::of(fields, visitor);
    let scope = filters.scope(visitor);
    let counts = engine.counts(&scope, MAX_COUNTED).await?;
    let page = engine.list(&scope, &filters.query()).await?;
    let now = engine.now();
    let money = spend::line(asked).await?;
    Ok(html! {
        h1 { "Jobs" }
        (money)
        (states(&filters, &counts))
        (form(&filters, visitor))
        (several_form(page.jobs.is_empty()))
        @if !page.jobs.is_empty() {
            ul .jobs #jobs data-part data-rows aria-label="Jobs, newest first" {
                @for job in &page.jobs { (row(job, visitor, now)) }
            }
        } @else if filters.is_narrow() {
            div .notice #jobs data-part {
                p { "Nothing fits these filters." }
                p { a href="/ui" { "Show all jobs" } }
            }
        } @else {
            div .notice #jobs data-part {
                p { "No jobs yet." }
                p {
                    a href="/ui/ask" { "Ask a question" } ", or let an MCP client ask one: "
                    code { "outlast init --help" } " sets a client up."
                }
            }
        }
        p .actions #more data-part {
            @if let Some(Cursor(after)) = page.next {
                a .button rel="next" href=(filters.address(filters.state, Some(after))) { "Older jobs" }
            }
        }
    })
}

fn states(filters: &Filters, counts: &[StateCount]) -> Markup {
    let entry = |state: Option<StateKind>, word: &str, count: String| {
        let current = (filters.state == state).then_some("true");
        html! {
            li { a href=(filters.address(state, None)) aria-current=[current] { (word) " " b { (count) } } }
        }
    };
    let counted = |count: u32| match count {
        MAX_COUNTED.. => format!("{MAX_COUNTED}+"),
        count => count.to_string(),
    };
    let all = match counts.iter().any(|count| count.jobs >= MAX_COUNTED) {
        true => counted(MAX_COUNTED),
        false => counts.iter().map(|count| count.jobs).sum::<u32>().to_string(),
    };
    html! {
        ul .states #states data-part aria-label="Filter by state" {
            (entry(None, "all", all))
            @for count in counts { (entry(Some(count.state), count.state.as_str(), counted(count.jobs))) }
        }
    }
}

fn form(filters: &Filters, visitor: &Visitor) -> Markup {
    html! {
        form .filters action="/ui" role="search" {
            @if let Some(state) = filters.state { input type="hidden" name="state" value=(state.as_str()); }
            label .wide {
                "Search questions and reports"
                input #search type="search" name="q" value=(filters.text) autocomplete="off";
            }
            label {
                "Provider"
                select name="provider" {
                    option value="" { "any" }
                    @for provider in PROVIDERS {
                        option selected[filters.provider == provider] { (provider) }
                    }
                }
            }
            label {
                "Failure"
                select name="code" {
                    option value="" { "any" }
                    @for code in Code::ALL {
                        option selected[filters.code == Some(*code)] { (code.as_str()) }
                    }
                }
            }
            @if visitor.view == PageView::AllOwners {
                label { "Owner" input name="owner" value=(filters.owner) autocomplete="off"; }
            }
            button { "Filter" }
            a .button #clear href="/ui" hidden[!filters.is_narrow()] { "Clear" }
        }
    }
}

/// Renders the form for the selected jobs. The boxes are in the rows, which are updated one by one.
fn several_form(is_hidden: bool) -> Markup {
    html! {
        form .several.noprint #several method="post" action="/ui/several" hidden[is_hidden] {
            label #all-jobs hidden { input #select-all type="checkbox"; " all on this page" }
            span .soft #selected { "Selected jobs:" }
            @for (action, name) in [("cancel", "Cancel"), ("retry", "Retry"), ("delete", "Delete")] {
                button name=(several::ACTION) value=(action) { (name) }
            }
        }
    }
}

/// Renders one job of a list.
pub(super) fn row(job: &Summary, visitor: &Visitor, now: Timestamp) -> Markup {
    let id = job.id.to_string();
    let progress = job.progress.as_ref().filter(|_| !job.state.is_terminal());
    let percent = progress.and_then(|progress| progress.percent);
    let mut sub = Vec::new();
    sub.extend(percent.map(|percent| format!("{percent}%")));
    sub.extend(progress.map(|progress| visible(&progress.message).into_owned()));
    let code = job.code.filter(|_| job.state == StateKind::Failed);
    if job.failures > 0 {
        sub.push(count_noun(job.failures as usize, "failed try", "failed tries"));
    }
    if let Some(ended) = job.ended_at {
        sub.push(format!("took {}", took(ended.since(job.created_at).as_secs())));
    }
    html! {
        li .job id={ "job-" (id) } {
            @if job.owner == visitor.owner {
                input .pick type="checkbox" name=(several::JOB) value=(id) form="several"
                    aria-label={ "Select " (visible(&job.title)) };
            } @else {
                span .pick {}
            }
            (layout::state(job.state))
            div .what {
                a .title href={ "/ui/jobs/" (id) } dir="auto" { (visible(&job.title)) }
                @if let Some(percent) = percent { (layout::bar(percent, "Progress")) }
                div .sub {
                    @if !job.state.is_terminal() {
                        (layout::clock(now.since(job.created_at).as_secs()))
                        @if !sub.is_empty() { " · " }
                    }
                    @if let Some(code) = code { b .code { (code.as_str()) } " · " }
                    (sub.join(" · "))
                }
            }
            div .who {
                (visible(&job.provider))
                @if let Some(model) = &job.model { br; span .sub { (visible(model)) } }
                @if visitor.view == PageView::AllOwners { br; span .sub { (visible(job.owner.as_str())) } }
            }
            div .num { (cost(job)) }
            div .num { (layout::ago(job.created_at, now)) }
        }
    }
}

fn cost(job: &Summary) -> Markup {
    let why = match job.state.is_terminal() {
        true => "may have been paid; there is no report",
        false => "set aside until the job ends",
    };
    html! {
        @match &job.charge {
            None => span .sub { "free" },
            Some(charge) if charge.is_final => (charge.amount.to_string()),
            Some(charge) => span title=(why) { "~" (charge.amount.to_string()) },
        }
    }
}
