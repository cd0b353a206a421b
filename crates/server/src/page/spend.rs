//! The spending of today and of this month, against the caps (I4).

use std::time::Duration;

use maud::{Markup, html};
use outlast_core::{NanoUsd, SpendBy, SpendQuery, SpendSum, StoreError, visible};

use super::layout::{Tab, View, bar};
use super::options::PageView;
use super::request::{PageRequest, PageResult};

const DAYS: u32 = 31;

struct Sums {
    days: Vec<SpendSum>,
    today: NanoUsd,
    month: NanoUsd,
}

async fn sums(asked: &PageRequest) -> Result<Sums, StoreError> {
    let now = asked.engine().now();
    let since = now.before(Duration::from_secs(86_400) * DAYS).day();
    let query = SpendQuery { by: SpendBy::Day, since };
    let days = asked.engine().spend(&asked.visitor.scope(), &query).await?;
    let today = now.day().to_string();
    let month = today.get(..7).unwrap_or_default().to_owned();
    let of = |prefix: &str| {
        let days = days.iter().filter(|day| day.key.starts_with(prefix));
        days.flat_map(|day| [day.spent, day.reserved, day.maybe]).sum()
    };
    Ok(Sums { today: of(&today), month: of(&month), days })
}

/// Renders one line above the list of jobs.
pub(super) async fn line(asked: &PageRequest) -> Result<Markup, StoreError> {
    let Sums { today, month, .. } = sums(asked).await?;
    Ok(html! {
        p .facts #spend data-part {
            "Today " (against_cap(today, asked)) ", this month " (month.to_string())
            ", with what is set aside or may have been paid. " a href="/ui/spend" { "Details" }
        }
    })
}

fn against_cap(today: NanoUsd, asked: &PageRequest) -> String {
    match (asked.options().limits.per_day, asked.visitor.view) {
        (Some(cap), PageView::Own) => format!("{today} of {cap}"),
        // The cap applies to each owner.
        (Some(_), PageView::AllOwners) | (None, _) => today.to_string(),
    }
}

pub(super) async fn view(asked: PageRequest) -> PageResult {
    let body = asked.read(body(&asked).await)?;
    let live = Some("/ui/events".to_owned());
    Ok(View { title: "Spend", tab: Tab::Spend, live, body }.answer(&asked.visitor))
}

async fn body(asked: &PageRequest) -> Result<Markup, StoreError> {
    let (engine, visitor, limits) = (asked.engine(), &asked.visitor, asked.options().limits);
    let Sums { days, today, month } = sums(asked).await?;
    let mut caps = Vec::new();
    caps.extend(limits.per_day.map(|cap| format!("{cap} a day (OUTLAST_MAX_USD_PER_DAY)")));
    caps.extend(limits.per_job.map(|cap| format!("{cap} a job (OUTLAST_MAX_USD_PER_JOB)")));
    let caps = match caps.is_empty() {
        true => {
            "No cap is set: OUTLAST_MAX_USD_PER_DAY and OUTLAST_MAX_USD_PER_JOB set one.".to_owned()
        }
        false => format!("Each owner may spend {}.", caps.join(" and ")),
    };
    let percent = match (limits.per_day, visitor.view) {
        (Some(cap), PageView::Own) if cap.0 > 0 => {
            Some((u128::from(today.0) * 100 / u128::from(cap.0)).min(100))
        }
        _ => None,
    };
    let since = engine.now().before(Duration::from_secs(86_400) * DAYS).day();
    let mut tables = Vec::new();
    let by_owner = (visitor.view == PageView::AllOwners).then_some((SpendBy::Owner, "Owner"));
    let others = [Some((SpendBy::Provider, "Provider")), Some((SpendBy::Model, "Model")), by_owner];
    for (by, name) in others.into_iter().flatten() {
        let sums = engine.spend(&visitor.scope(), &SpendQuery { by, since }).await?;
        tables.push(table(name, &sums));
    }
    let mut newest_first = days;
    newest_first.reverse();
    Ok(html! {
        h1 { "Spend" }
        div .big #today data-part {
            p {
                "Today (UTC) " strong { (against_cap(today, asked)) } ", this month " strong { (month.to_string()) }
                ", with what is set aside or may have been paid. " (caps)
            }
            @if let Some(percent) = percent { (bar(percent, "Part of today's cap")) }
        }
        p .soft {
            "The last " (DAYS) " days. \"Set aside\" is for jobs that have not ended; "
            "\"maybe\" is what may have been paid without a report."
        }
        (table("Day", &newest_first))
        @for table in tables { (table) }
    })
}

fn table(name: &str, sums: &[SpendSum]) -> Markup {
    let by = name.to_lowercase();
    html! {
        h2 { "By " (by) }
        @if sums.is_empty() {
            p .soft { "Nothing yet." }
        } @else {
            div .scroll id={ "by-" (by) } data-part tabindex="0" role="region" aria-label={ "Spend by " (by) } {
                table .sums {
                    thead {
                        tr { @for head in [name, "Spent", "Set aside", "Maybe", "Runs"] { th scope="col" { (head) } } }
                    }
                    tbody {
                        @for sum in sums {
                            tr {
                                td { (visible(&sum.key)) }
                                @for amount in [sum.spent, sum.reserved, sum.maybe] { td { (amount.to_string()) } }
                                td { (sum.runs) }
                            }
                        }
                    }
                }
            }
        }
    }
}
