//! Jobs: counts by state, filters that are part of the address, and one page of the list (I2).

use axum::extract::Query;
use outlast_core::{
    Cursor, JobQuery, OwnerId, Profile, Scope, StateCount, StateKind, StoreError, Summary,
    Timestamp,
};

use super::form::{Fields, address};
use super::layout::{self, Tab, View};
use super::options::PageView;
use super::request::{PageRequest, PageResult};
use super::session::Visitor;
use super::spend;
use crate::export::{escaped, escaped_exactly};
use crate::text::{counted, took};

/// The number of jobs on a page of the list.
const PAGE: u32 = 50;
/// The number at which counting stops.
const MAX_COUNTED: u32 = 1_000;
/// The minimum number of hexadecimal digits of a search for an id.
const MIN_ID_DIGITS: usize = 6;

/// The providers that can have run a job.
const PROVIDERS: [&str; 6] =
    [Profile::PERPLEXITY, "openai", "anthropic", "gemini", Profile::LIBRARY, Profile::WORKFLOW];

/// The filters in the address of the list.
struct Filters {
    state: Option<StateKind>,
    text: String,
    provider: String,
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
        JobQuery {
            states: self.state.into_iter().collect(),
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
                ("owner", &self.owner),
                ("after", &after),
            ],
        )
    }

    fn is_narrow(&self) -> bool {
        self.state.is_some()
            || [&self.text, &self.provider, &self.owner].iter().any(|text| !text.is_empty())
    }
}

pub(super) async fn view(asked: PageRequest, Query(fields): Query<Fields>) -> PageResult {
    let body = asked.read(body(&asked, &fields).await)?;
    let live = Some("/ui/events".to_owned());
    Ok(View { title: "Jobs", tab: Tab::Jobs, live, body }.answer(&asked.visitor))
}

async fn body(asked: &PageRequest, fields: &Fields) -> Result<String, StoreError> {
    let (engine, visitor) = (asked.engine(), &asked.visitor);
    let filters = Filters::of(fields, visitor);
    let scope = filters.scope(visitor);
    let counts = engine.counts(&scope, MAX_COUNTED).await?;
    let page = engine.list(&scope, &filters.query()).await?;
    let now = engine.now();
    let rows: String = page.jobs.iter().map(|job| row(job, visitor, now)).collect();
    let money = spend::line(asked).await?;
    let jobs = match (page.jobs.is_empty(), filters.is_narrow()) {
        (false, _) => format!(
            "<ul class=\"jobs\" id=\"jobs\" data-part data-rows aria-label=\"Jobs, newest first\">\n{rows}</ul>\n"
        ),
        (true, true) => {
            "<div class=\"notice\" id=\"jobs\" data-part><p>Nothing fits these filters.</p>\
                         <p><a href=\"/ui\">Show all jobs</a></p></div>\n"
                .to_owned()
        }
        (true, false) => "<div class=\"notice\" id=\"jobs\" data-part><p>No jobs yet.</p><p>\
                          <a href=\"/ui/ask\">Ask a question</a>, or let an MCP client ask one: \
                          <code>outlast init --help</code> sets a client up.</p></div>\n"
            .to_owned(),
    };
    let more = page.next.map(|Cursor(after)| {
        format!(
            "<a class=\"button\" rel=\"next\" href=\"{}\">Older jobs</a>",
            escaped(&filters.address(filters.state, Some(after)))
        )
    });
    Ok(format!(
        "<h1>Jobs</h1>\n{money}{}{}{jobs}<p class=\"actions\" id=\"more\" data-part>{}</p>\n",
        states(&filters, &counts),
        form(&filters, visitor),
        more.unwrap_or_default(),
    ))
}

fn states(filters: &Filters, counts: &[StateCount]) -> String {
    let entry = |state: Option<StateKind>, word: &str, count: String| {
        let current = if filters.state == state { " aria-current=\"true\"" } else { "" };
        let address = escaped(&filters.address(state, None));
        format!("<li><a href=\"{address}\"{current}>{word} <b>{count}</b></a></li>\n")
    };
    let told = |count: u32| match count {
        MAX_COUNTED.. => format!("{MAX_COUNTED}+"),
        count => count.to_string(),
    };
    let total: u32 = counts.iter().map(|count| count.jobs).sum();
    let all_told = if counts.iter().any(|count| count.jobs >= MAX_COUNTED) {
        format!("{MAX_COUNTED}+")
    } else {
        total.to_string()
    };
    let all = entry(None, "all", all_told);
    let each: String = counts
        .iter()
        .map(|count| entry(Some(count.state), count.state.as_str(), told(count.jobs)))
        .collect();
    format!(
        "<ul class=\"states\" id=\"states\" data-part aria-label=\"Filter by state\">\n{all}{each}</ul>\n"
    )
}

fn form(filters: &Filters, visitor: &Visitor) -> String {
    let options: String = PROVIDERS
        .iter()
        .map(|provider| {
            let selected = if filters.provider == *provider { " selected" } else { "" };
            format!("<option{selected}>{provider}</option>")
        })
        .collect();
    let owner = match visitor.view {
        PageView::Own => String::new(),
        PageView::AllOwners => format!(
            "<label>Owner<input name=\"owner\" value=\"{}\" autocomplete=\"off\"></label>\n",
            escaped_exactly(&filters.owner)
        ),
    };
    let state = filters.state.map(|state| {
        format!("<input type=\"hidden\" name=\"state\" value=\"{}\">", state.as_str())
    });
    let clear = if filters.is_narrow() { "<a class=\"button\" href=\"/ui\">Clear</a>" } else { "" };
    format!(
        "<form class=\"filters\" action=\"/ui\" role=\"search\">{}\n\
         <label class=\"wide\">Search questions and reports<input type=\"search\" id=\"search\" name=\"q\" value=\"{}\" autocomplete=\"off\"></label>\n\
         <label>Provider<select name=\"provider\"><option value=\"\">any</option>{options}</select></label>\n\
         {owner}<button>Filter</button>{clear}\n</form>\n",
        state.unwrap_or_default(),
        escaped_exactly(&filters.text),
    )
}

/// Renders one job of a list.
pub(super) fn row(job: &Summary, visitor: &Visitor, now: Timestamp) -> String {
    let id = job.id;
    let mut sub = Vec::new();
    let mut bar = String::new();
    if !job.state.is_terminal()
        && let Some(progress) = &job.progress
    {
        if let Some(percent) = progress.percent {
            bar = layout::bar(percent, "Progress");
            sub.push(format!("{percent}%"));
        }
        sub.push(escaped(&progress.message));
    }
    if job.failures > 0 {
        sub.push(counted(job.failures as usize, "failed try", "failed tries"));
    }
    if let Some(ended) = job.ended_at {
        sub.push(format!("took {}", took(ended.since(job.created_at).as_secs())));
    }
    let mut who = escaped(&job.provider);
    if let Some(model) = &job.model {
        who.push_str(&format!("<br><span class=\"sub\">{}</span>", escaped(model)));
    }
    if visitor.view == PageView::AllOwners {
        who.push_str(&format!("<br><span class=\"sub\">{}</span>", escaped(job.owner.as_str())));
    }
    let cost = match &job.charge {
        None => "<span class=\"sub\">free</span>".to_owned(),
        Some(charge) if charge.is_final => charge.amount.to_string(),
        Some(charge) => {
            let why = match job.state.is_terminal() {
                true => "may have been paid; there is no report",
                false => "set aside until the job ends",
            };
            format!("<span title=\"{why}\">~{}</span>", charge.amount)
        }
    };
    format!(
        "<li class=\"job\" id=\"job-{id}\">{}<div class=\"what\"><a class=\"title\" href=\"/ui/jobs/{id}\">{}</a>\
         {bar}<div class=\"sub\">{}</div></div><div class=\"who\">{who}</div><div class=\"num\">{cost}</div>\
         <div class=\"num\">{}</div></li>\n",
        layout::state(job.state),
        escaped(&job.title),
        sub.join(" &middot; "),
        layout::ago(job.created_at, now),
    )
}
