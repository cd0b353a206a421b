//! One suite over the dialects: the simulator's scenarios by name, what deep research comes to in each, and never
//! more than one purchase.

use std::time::Duration;

use outlast_core::Provider;
use outlast_provider::perplexity::{Agent, Sonar};
use outlast_provider::vendor::VendorOptions;
use outlast_simulator::{Options, Simulator, SonarMode};

use crate::bench::{KEY, PATIENCE, ask, options, patiently};
use crate::fault_table::{followed, not_begun};

/// A name, the scenario, and what it comes to in the Agent and in the Sonar dialect.
pub(crate) type Row = (&'static str, &'static str, [&'static str; 2]);

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    ("all goes well",            "ok",                                        ["report", "report"]),
    ("all at once",              "ok;delay_ms=0",                             ["report", "report"]),
    ("the run fails",            "fail",                                      ["RunFailed", "RunFailed"]),
    ("cut short",                "incomplete",                                ["report", "report"]),
    ("cut short, empty",         "incomplete;output=empty",                   ["Rejected", "report"]),
    ("bad request",              "http;status=400",                           ["Refused Rejected", "Refused Rejected"]),
    ("bad key",                  "http;status=401",                           ["Refused Unauthorized", "Refused Unauthorized"]),
    ("bad key, by an edge",      "http;status=401;body=html",                 ["Refused Unauthorized", "Refused Unauthorized"]),
    ("no credit",                "quota",                                     ["Refused QuotaExhausted", "Refused QuotaExhausted"]),
    ("no credit, 402",           "quota;status=402",                          ["Refused QuotaExhausted", "Refused QuotaExhausted"]),
    ("too many requests",        "http;status=429;retry_after=1",             ["Refused RateLimited", "Refused RateLimited"]),
    ("outage, in its words",    "503",                                       ["Refused Unavailable", "Refused Unavailable"]),
    ("outage, twice",           "503x2",                                     ["Refused Unavailable", "Refused Unavailable"]),
    ("outage, by an edge",      "http;status=502;body=html",                 ["Unknown Unavailable", "Unknown Unavailable"]),
    ("outage, without a word",  "http;status=500;body=empty",                ["Unknown Unavailable", "Unknown Unavailable"]),
    ("a gateway, in JSON",       "gateway",                                   ["Unknown Unavailable", "Unknown Unavailable"]),
    ("a gateway, 502",           "gateway;status=502",                        ["Unknown Unavailable", "Unknown Unavailable"]),
    ("a gateway, 408",           "gateway;status=408",                        ["Unknown Unavailable", "Unknown Unavailable"]),
    ("a gateway, 524",           "gateway;status=524",                        ["Unknown Unavailable", "Unknown Unavailable"]),
    ("the answer is late",       "late_submit;ms=100000",                     ["report", "report"]),
    ("thoughts before it",       "ok;thinks",                                 ["report", "report"]),
    ("the answer is lost",       "drop_submit",                               ["Unknown Unreachable", "Unknown Unreachable"]),
    ("a lost session",           "drop_create",                               ["report", "report"]),
    ("a late list",              "late_list",                                 ["report", "report"]),
    ("the answer has no id",     "no_id",                                     ["Unknown Malformed", "Unknown Rejected"]),
    ("checks fail twice",        "http;on=poll;times=2;status=503|no_terminal", ["report", "report"]),
    ("checks are too many",      "http;on=poll;times=2;status=429|no_terminal", ["report", "report"]),
    ("the key is withdrawn",     "http;on=poll;status=401|no_terminal",       ["Unauthorized", "Unauthorized"]),
    ("missing for a moment",     "flap404|no_terminal",                       ["report", "report"]),
    ("missing for a while",      "flap404;ms=100000|no_terminal",             ["report", "report"]),
    ("missing for good",         "lost|no_terminal",                          ["RunLost", "RunLost"]),
    ("checks lag behind",        "stale;polls=3|no_terminal",                 ["report", "report"]),
    ("checks go back in time",   "stale;polls=2;backwards|no_terminal",       ["report", "report"]),
    ("answers break off",        "drop;after_bytes=40;times=2|no_terminal;delay_ms=0", ["Unknown Unreachable", "report"]),
    ("no JSON for a while",      "malformed;kind=not_json;on=poll;times=2|no_terminal", ["report", "report"]),
    ("half an answer",           "malformed;kind=truncated;on=poll;times=2|no_terminal", ["report", "report"]),
    ("nulls",                    "malformed;kind=null_fields;on=poll;times=1|no_terminal", ["report", "report"]),
    ("another type",             "malformed;kind=wrong_type;on=poll;times=1|no_terminal", ["report", "report"]),
    ("a new status",             "malformed;kind=unknown_status;on=poll;times=1|no_terminal", ["report", "report"]),
    ("byte by byte",             "slow;chunk_bytes=7;chunk_ms=0|ok;words=50;sources=2", ["report", "report"]),
    ("hostile text",             "inject;line=100000",                        ["report", "report"]),
    ("no cost stated",             "cost;none",                                 ["report", "report"]),
    ("dates missing",            "ok;dates=mixed",                            ["report", "report"]),
    ("its own cost",        "cost;total=1.25",                           ["report", "report"]),
    ("fails while it searches",  "fail;at=search;code=server_error",          ["RunFailed", "RunFailed"]),
    ("an action is asked for",   "requires_action",                           ["Rejected", "goes on"]),
    ("no key like this",         "http;status=403;body=html",                 ["Refused Unauthorized", "Refused Unauthorized"]),
    ("retired",                  "http;status=403",                           ["Refused Retired", "Refused Retired"]),
    ("no such address",          "http;status=404",                           ["Refused Rejected", "Refused Rejected"]),
    ("wrong in detail",          "http;status=422",                           ["Refused Rejected", "Refused Rejected"]),
    ("too slow for an edge",     "http;status=524;body=html",                 ["Unknown Unavailable", "Unknown Unavailable"]),
    ("never ends",               "stuck",                                     ["goes on", "goes on"]),
    ("never ends, but pings",    "stuck;pings=true",                          ["goes on", "goes on"]),
    ("the stream breaks",        "drop;after_events=2;times=2",               ["report", "report"]),
    ("the stream is reset",      "drop;after_events=2;rst=true",              ["report", "report"]),
    ("no stream can be had",     "drop;after_events=2|no_stream",             ["report", "report"]),
    ("no end is reported",           "sse;no_terminal=true",                      ["report", "report"]),
    ("other line ends",          "sse;crlf=true",                             ["report", "report"]),
    ("keep-alives",              "sse;pings=true",                            ["report", "report"]),
    ("events sent twice",        "sse;dup=true",                              ["report", "report"]),
    ("events left out",          "sse;gap=true",                              ["report", "report"]),
    ("unknown events",           "sse;unknown=true",                          ["report", "report"]),
    ("a mark at the end",        "sse;done=true",                             ["report", "report"]),
    ("bad UTF-8 for a while",    "malformed;kind=bad_utf8;on=poll;times=1|no_terminal", ["report", "report"]),
    ("a huge answer",            "malformed;kind=huge;bytes=34000000;on=poll|no_terminal", ["TooLarge", "TooLarge"]),
    ("unknown items",            "malformed;kind=unknown_item;on=poll;times=1|no_terminal", ["report", "report"]),
    ("an end that is cut",       "malformed;kind=truncated;on=stream",        ["report", "report"]),
    ("an end of bad UTF-8",      "malformed;kind=bad_utf8;on=stream",         ["report", "report"]),
    ("an end of other types",    "malformed;kind=wrong_type;on=stream",       ["report", "report"]),
    ("a huge end",               "malformed;kind=huge;bytes=9000000;on=stream",             ["report", "report"]),
    ("a receipt without sense",  "malformed;kind=not_json;on=submit",         ["report", "Unknown Rejected"]),
    ("slow to begin",            "slow;first_byte_ms=100",                    ["report", "report"]),
    ("a real rate limit",        "ratelimit;rpm=60;burst=1;on=any|no_terminal", ["report", "report"]),
    ("gone when it was done",    "retention;ms=0|no_terminal;delay_ms=0",     ["RunLost", "RunLost"]),
    ("a stop changes nothing",   "cancel;mode=ignored",                       ["report", "report"]),
];

/// The simulator's table of scenarios is the list of what there is: a new one needs a row here.
#[test]
fn every_scenario_of_the_simulator_has_a_row() {
    let names = outlast_simulator::GUIDE.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("| `")?.split_once('`')?;
        // A name may come with an example of its keys.
        name.split(';').next()
    });
    let names: Vec<&str> = names.collect();
    assert!(names.len() >= 20, "{names:?}");
    for name in names {
        let has_it = |(_, scenario, _): &Row| {
            scenario.split('|').any(|clause| clause.split(';').next() == Some(name))
        };
        assert!(ROWS.iter().any(has_it), "{name} has no row");
    }
}

/// B9a, A5, A10: every scenario by its name.
#[tokio::test]
async fn b9a_every_scenario_comes_to_its_end_in_both_dialects_and_is_bought_once() {
    let (mut table, mut wrong) = (String::new(), 0);
    for (name, scenario, expected) in ROWS {
        table.push_str(&format!("{name:<26}"));
        for (dialect, expected) in expected.iter().enumerate() {
            let (outcome, bought) = outcome(&DIALECTS[dialect], scenario).await;
            table.push_str(&format!("| {outcome} "));
            if outcome != *expected || bought > 1 {
                wrong += 1;
                table.push_str(&format!("<- expected {expected}; bought {bought} times "));
            }
        }
        table.push('\n');
    }
    assert_eq!(wrong, 0, "{wrong} cells differ\n{table}");
}

/// Streams that are silent for this long are given up, and the run is looked at.
const SILENCE: Duration = Duration::from_secs(1);

/// The number of pings after that are enough for who waits for no more than a silence to be through with it.
const PINGS: usize = 100;

/// Far beyond what it takes to see that a run goes on, and within the patience of who follows it.
const LIMIT: Duration = Duration::from_secs(12);

/// A dialect of the simulator, and the adapter that speaks it.
pub(crate) struct Simulated {
    pub(crate) make: fn(VendorOptions) -> Box<dyn Provider>,
    /// The path after the simulator's address in the base URL.
    pub(crate) base: &'static str,
    /// The path of its runs.
    pub(crate) runs: &'static str,
}

const DIALECTS: [Simulated; 2] = [
    Simulated {
        make: |options| Box::new(Agent::new(options).unwrap()),
        base: "",
        runs: "/v1/agent",
    },
    Simulated {
        make: |options| Box::new(Sonar::new(options).unwrap()),
        base: "",
        // None of them has a stream here.
        runs: "/v1/agent",
    },
];

/// The result of research, and the number of times it was bought.
pub(crate) async fn outcome(dialect: &Simulated, scenario: &str) -> (String, u64) {
    let simulated = Options { speed: 1_000.0, sonar: SonarMode::Live, ..Options::default() };
    let sim = Simulator::start(simulated).await.unwrap();
    let clock = Default::default();
    let timeout = if scenario.starts_with("stuck") { SILENCE } else { PATIENCE };
    let base_url = format!("{}{}", sim.url(), dialect.base);
    let provider = (dialect.make)(options(&base_url, KEY, timeout, &clock));
    let begun = patiently(provider.begin(&ask(&format!("q [[sim:{scenario}]]")), "key")).await;
    let outcome = match begun {
        Err(error) => not_begun(&error),
        Ok(mut run) => {
            let id = run.remote().id;
            tokio::select! {
                outcome = followed(&mut *run) => outcome,
                seen = endless(&sim, dialect.runs, &id, scenario) => seen.to_owned(),
            }
        }
    };
    (outcome, sim.stats().submits)
}

/// Comes back when a run that never ends has been followed long enough to see that; never for others.
async fn endless(sim: &Simulator, runs: &str, id: &str, scenario: &str) -> &'static str {
    if !scenario.starts_with("stuck") && !scenario.starts_with("requires_action") {
        return std::future::pending().await;
    }
    let seen = async {
        tokio::select! {
            () = looked_at(sim, id) => {}
            () = pinged(sim, runs, id), if scenario.contains("pings") => {}
        }
    };
    let seen = tokio::time::timeout(LIMIT, seen).await;
    seen.map_or("neither ends nor goes on", |()| "goes on")
}

/// Comes back when the run has been looked at three times after the first.
async fn looked_at(sim: &Simulator, id: &str) {
    let mut look = tokio::time::interval(Duration::from_millis(2));
    while !sim.stats().runs.iter().any(|run| run.id == id && run.polls > 3) {
        look.tick().await;
    }
}

/// Comes back when one more listener to the run's stream, where it has one, has heard pings for longer than a silence
/// may be: the first listener was sent as many.
async fn pinged(sim: &Simulator, runs: &str, id: &str) {
    #[expect(clippy::disallowed_methods, reason = "a look past the adapter")]
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}{runs}/{id}?stream=true&starting_after=0", sim.url());
    let mut response = client.get(url).bearer_auth(KEY).send().await.unwrap();
    if !response.status().is_success() {
        return std::future::pending().await;
    }
    let (started, mut pings) = (tokio::time::Instant::now(), 0);
    while pings < PINGS {
        let chunk = response.chunk().await.unwrap().expect("the stream goes on");
        if started.elapsed() > SILENCE {
            pings += chunk.windows(6).filter(|bytes| bytes == b": ping").count();
        }
    }
}
