//! The spending of today and of this month, against the caps (I4).

use outlast_core::{NanoUsd, SpendBy, SpendQuery, SpendSum, StoreError};
use std::time::Duration;

use super::layout::{Tab, View, bar};
use super::options::PageView;
use super::request::{PageRequest, PageResult};
use crate::export::escaped;

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
pub(super) async fn line(asked: &PageRequest) -> Result<String, StoreError> {
    let Sums { today, month, .. } = sums(asked).await?;
    Ok(format!(
        "<p class=\"facts\" id=\"spend\" data-part>Today {}, this month {month}, with what is set aside or may have been paid. <a href=\"/ui/spend\">Details</a></p>\n",
        against_cap(today, asked),
    ))
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

async fn body(asked: &PageRequest) -> Result<String, StoreError> {
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
    let bar = match (limits.per_day, visitor.view) {
        (Some(cap), PageView::Own) if cap.0 > 0 => {
            let percent = (u128::from(today.0) * 100 / u128::from(cap.0)).min(100);
            bar(percent, "Part of today's cap") + "\n"
        }
        _ => String::new(),
    };
    let since = engine.now().before(Duration::from_secs(86_400) * DAYS).day();
    let mut tables = String::new();
    let by_owner = (visitor.view == PageView::AllOwners).then_some((SpendBy::Owner, "Owner"));
    let others = [Some((SpendBy::Provider, "Provider")), Some((SpendBy::Model, "Model")), by_owner];
    for (by, name) in others.into_iter().flatten() {
        let sums = engine.spend(&visitor.scope(), &SpendQuery { by, since }).await?;
        tables.push_str(&table(name, &sums));
    }
    let mut newest_first = days;
    newest_first.reverse();
    Ok(format!(
        "<h1>Spend</h1>\n<div class=\"big\" id=\"today\" data-part><p>Today (UTC) <strong>{}</strong>, this month <strong>{month}</strong>, with what is set aside or may have been paid. {caps}</p>\n{bar}</div>\n\
         <p class=\"soft\">The last {DAYS} days. \"Set aside\" is for jobs that have not ended; \"maybe\" is what may have been paid without a report.</p>\n{}{tables}",
        against_cap(today, asked),
        table("Day", &newest_first),
    ))
}

fn table(name: &str, sums: &[SpendSum]) -> String {
    if sums.is_empty() {
        return format!(
            "<h2>By {}</h2>\n<p class=\"soft\">Nothing yet.</p>\n",
            name.to_lowercase()
        );
    }
    let rows: String = sums
        .iter()
        .map(|sum| {
            format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                escaped(&sum.key),
                sum.spent,
                sum.reserved,
                sum.maybe,
                sum.runs
            )
        })
        .collect();
    format!(
        "<h2>By {}</h2>\n<div class=\"scroll\" id=\"by-{0}\" data-part tabindex=\"0\" role=\"region\" aria-label=\"Spend by {0}\"><table class=\"sums\">\
         <thead><tr><th scope=\"col\">{name}</th><th scope=\"col\">Spent</th><th scope=\"col\">Set aside</th><th scope=\"col\">Maybe</th><th scope=\"col\">Runs</th></tr></thead>\
         <tbody>\n{rows}</tbody></table></div>\n",
        name.to_lowercase(),
    )
}
