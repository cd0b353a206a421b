//! `outlast research --plan`: the plan of the researcher and its expected cost, without a run.

use outlast_core::{NanoUsd, Profile, Request, ResearchRequest};
use outlast_engine::Providers;
use outlast_researcher::{PlanPreview, Researcher};
use serde_json::{Value, json};

use super::asking::{self, EarlierTurns};
use crate::cli::{Global, ResearchArgs};
use crate::commands::engine::with_engine;
use crate::config::Config;
use crate::error::{CommandError, CommandResult, DONE, refuse};
use crate::open_store::OpenStore;
use crate::{ui, wire};

/// Shows the plan for a question. The store is opened only for an earlier conversation.
pub(super) async fn show(
    global: &Global,
    config: &Config,
    profiles: &[Profile],
    question: &str,
    args: &ResearchArgs,
) -> CommandResult {
    let Some(conversation) = &args.follow_up else {
        return ask(config, profiles, question, args, None).await;
    };
    let store = OpenStore::open(config).await?;
    with_engine(global, config, store, Providers::default(), async |session| {
        let earlier = asking::earlier(session, conversation).await?;
        ask(config, profiles, question, args, Some(&earlier)).await
    })
    .await
}

async fn ask(
    config: &Config,
    profiles: &[Profile],
    question: &str,
    args: &ResearchArgs,
    earlier: Option<&EarlierTurns>,
) -> CommandResult {
    let profile = asking::profile(profiles, args, earlier)?;
    let provider = profile.provider();
    let researcher = wire::researcher(config)?.filter(|_| provider == Profile::RESEARCHER);
    let Some(researcher) = researcher else {
        return refuse(
            format!("the provider `{provider}` does not show its plan"),
            "add --provider researcher, which plans on your own model; or leave --plan out",
        );
    };
    let ask = asking::request(question, args, earlier);
    let request = Request::from(serde_json::to_value(&ask)?);
    check_limits(config, &researcher, &ask, &request)?;
    ui::print_waiting("Planning the research ...");
    let planned = researcher.preview(&request).await.map_err(|error| {
        let hint = "`outlast doctor` checks the model server";
        CommandError::failed(error.to_string(), hint)
    })?;
    match args.json {
        true => ui::json(&json(&planned)),
        false => print(&planned),
    }
    DONE
}

/// Refuses a plan that may cost more than is allowed. It is not in the ledger, so a limit for the day allows free plans
/// only.
fn check_limits(
    config: &Config,
    researcher: &Researcher,
    ask: &ResearchRequest,
    request: &Request,
) -> CommandResult<()> {
    let bound = researcher.preview_bound(request);
    if bound == Some(NanoUsd(0)) {
        return Ok(());
    }
    let limits = &config.spend_limits;
    if limits.per_day.is_some() {
        let why = "planning alone is paid for outside of the ledger, and OUTLAST_MAX_USD_PER_DAY limits what is paid for";
        return refuse(why, "leave --plan out; the run counts towards the limit");
    }
    let Some(limit) = [limits.per_job, ask.budget].into_iter().flatten().min() else {
        return Ok(());
    };
    match bound {
        Some(bound) if bound <= limit => Ok(()),
        Some(bound) => refuse(
            format!("planning may cost {bound}, and the limit is {limit}"),
            "ask a shorter question, or raise the limit",
        ),
        None => refuse(
            "what planning costs is not known beforehand, and there is a limit",
            "set price_in and price_out under [researcher] in outlast.toml",
        ),
    }
}

fn print(planned: &PlanPreview) {
    ui::title(&planned.title);
    for (number, part) in (1..).zip(&planned.questions) {
        ui::line("");
        ui::entry(&format!("{number}. {}", part.question), 3);
        ui::entry(&format!("   heading: {}", part.heading), 12);
        for query in &part.queries {
            ui::entry(&format!("   search:  {query}"), 12);
        }
    }
    ui::line("");
    ui::fact(
        "at most",
        format!(
            "{}, {}, {}, {} tokens, {} minutes",
            ui::count(planned.rounds, "round", "rounds"),
            ui::count(planned.searches, "search", "searches"),
            ui::count(planned.pages, "page", "pages"),
            planned.tokens,
            planned.minutes,
        ),
    );
    ui::fact("the run costs", run_cost(planned));
    let (read, written) = planned.planning_tokens;
    let cost = planned.planning_cost.map_or_else(
        || "an unknown amount".to_owned(),
        |cost| match cost {
            NanoUsd(0) => "nothing".to_owned(),
            cost => cost.to_string(),
        },
    );
    ui::fact("this plan cost", format!("{cost} ({read} tokens read, {written} written)"));
    if !planned.is_usable {
        ui::remark(
            "The model gave no usable plan, so the question itself is the plan; a run asks it once more.",
        );
    }
}

fn run_cost(planned: &PlanPreview) -> String {
    match (planned.typical_cost, planned.highest_cost) {
        (Some(_), Some(NanoUsd(0))) => "nothing: all prices are 0".to_owned(),
        (Some(typical), Some(highest)) => format!("about {typical}, {highest} at most"),
        _ => "an unknown amount: set price_in, price_out and price_search under [researcher]"
            .to_owned(),
    }
}

fn json(planned: &PlanPreview) -> Value {
    let nanos = |cost: Option<NanoUsd>| cost.map(|NanoUsd(nanos)| nanos);
    let questions = planned.questions.iter().map(|part| {
        json!({ "question": part.question, "heading": part.heading, "queries": part.queries })
    });
    let (read, written) = planned.planning_tokens;
    json!({
        "title": planned.title,
        "questions": questions.collect::<Vec<_>>(),
        "usable": planned.is_usable,
        "limits": {
            "rounds": planned.rounds, "searches": planned.searches, "pages": planned.pages,
            "tokens": planned.tokens, "minutes": planned.minutes,
        },
        "typical_nano_usd": nanos(planned.typical_cost),
        "highest_nano_usd": nanos(planned.highest_cost),
        "planning": { "nano_usd": nanos(planned.planning_cost), "tokens_read": read, "tokens_written": written },
    })
}
