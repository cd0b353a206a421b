//! What a test asks of a run: parsed from text, decided before the run exists. The syntax is in the crate's docs.

mod choose;

pub(crate) use choose::without_markers;

use crate::clause::{Keys, Times};
use crate::faults::{
    Call, CancelMode, Channel, Cost, Cut, FaultBody, HttpFault, Malformed, Rate, Slow, Sse, Stale,
};

/// The scenarios and their keys, as a table in Markdown.
pub const GUIDE: &str = include_str!("scenarios.md");

/// Every clause name, for telling a scenario from an ordinary API key.
pub(crate) const NAMES: [&str; 25] = [
    "ok",
    "fail",
    "incomplete",
    "stuck",
    "http",
    "drop_submit",
    "gateway",
    "late_submit",
    "no_id",
    "drop",
    "no_stream",
    "no_terminal",
    "lost",
    "cancel",
    "requires_action",
    "quota",
    "flap404",
    "malformed",
    "slow",
    "sse",
    "stale",
    "ratelimit",
    "retention",
    "cost",
    "inject",
];

/// A slip like `words=60000000` must not eat the machine the tests run on.
const MAX_WORDS: usize = 1_000_000;
const MAX_SOURCES: usize = 10_000;
const MAX_LINE: usize = 64_000_000;
/// What a gateway says that has waited long enough.
const GATEWAY_TIMEOUT: u16 = 504;
/// How late a late answer is: longer than a test waits for it.
const LATE_MS: u64 = 60_000;
/// Longer than what terminals, logs and many parsers take in one line.
const LONG_LINE: usize = 1_000_000;

/// How one run behaves, from its submit to its last poll.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scenario {
    pub(crate) shape: Shape,
    pub(crate) ending: Ending,
    pub(crate) http: Vec<HttpFault>,
    pub(crate) answer: Answer,
    pub(crate) cut: Option<Cut>,
    pub(crate) refuses_attach: bool,
    pub(crate) hides_terminal: bool,
    /// From which GET on, counted from 0, the run cannot be found.
    pub(crate) lost_after: Option<u64>,
    /// How many GETs do not find the run before it is found.
    pub(crate) flaps: u64,
    /// For how long after its submit no GET finds the run.
    pub(crate) hidden_ms: u64,
    pub(crate) cancel: CancelMode,
    pub(crate) malformed: Option<Malformed>,
    pub(crate) slow: Option<Slow>,
    pub(crate) sse: Sse,
    pub(crate) stale: Option<Stale>,
    pub(crate) rate: Option<Rate>,
    /// How long a finished run can be found.
    pub(crate) retention_ms: Option<u64>,
    pub(crate) cost: Option<Cost>,
}

/// The size and pace of a run; what is `None` follows from the effort.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    pub(crate) words: Option<usize>,
    pub(crate) sources: Option<usize>,
    pub(crate) searches: Option<usize>,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) hold: bool,
    /// The report comes after thoughts, between their tags, also where the API has none.
    pub(crate) thinks: bool,
    pub(crate) markers: Markers,
    pub(crate) dates: Dates,
    /// The length of the longest line among hostile text, if there is any.
    pub(crate) hostile: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Ending {
    #[default]
    Completed,
    Failed {
        at: Phase,
        code: String,
        times: Times,
    },
    Incomplete(KeptOutput),
    Stuck {
        pings: bool,
    },
    /// Waits for its client to run a tool.
    RequiresAction,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase {
    Search,
    Write,
}

/// How much output an incomplete run still shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum KeptOutput {
    Partial,
    Nothing,
}

/// What the client hears of its submit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Answer {
    #[default]
    Full,
    WithoutId,
    Dropped,
    /// Something between the client and the API answers in its place.
    Gateway {
        status: u16,
        body: FaultBody,
    },
    /// It comes so much later.
    Late {
        ms: u64,
    },
}

/// What a citation looks like in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Markers {
    /// `[3]`, the number of the source.
    #[default]
    Number,
    /// `[web:2]`, counted from 0.
    Web,
    /// `[3](https://...)`
    Link,
}

/// Which sources have dates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Dates {
    #[default]
    Given,
    Null,
    Absent,
    /// Some given, some null, some absent.
    Mixed,
}

impl Scenario {
    /// Reads `name;key=value;...|name;...`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut scenario = Self::default();
        for clause in text.split('|') {
            scenario.add(clause)?;
        }
        Ok(scenario)
    }

    /// The error that the `nth` such request, counted from 0, meets.
    pub(crate) fn fault(&self, on: Call, nth: u64) -> Option<&HttpFault> {
        let mut earlier = 0;
        for fault in self.http.iter().filter(|fault| fault.on == on) {
            match fault.times {
                Times::Always => return Some(fault),
                Times::First(times) if nth < earlier + times => return Some(fault),
                Times::First(times) => earlier += times,
            }
        }
        None
    }

    /// How the `nth` answer that travels so, counted from 0, is malformed.
    pub(crate) fn malformation(&self, channel: Channel, nth: u64) -> Option<Malformed> {
        self.malformed.filter(|fault| fault.strikes(channel) && fault.times.covers(nth))
    }

    fn add(&mut self, clause: &str) -> Result<(), String> {
        let mut keys = Keys::read(clause)?;
        match keys.name {
            "ok" => {}
            "fail" => {
                self.ending = Ending::Failed {
                    at: keys
                        .choice("at", [("search", Phase::Search), ("write", Phase::Write)])?
                        .unwrap_or(Phase::Write),
                    code: keys.value("code")?.unwrap_or_else(|| "server_error".to_owned()),
                    times: keys.times()?,
                }
            }
            "incomplete" => {
                let kept = [("partial", KeptOutput::Partial), ("empty", KeptOutput::Nothing)];
                self.ending =
                    Ending::Incomplete(keys.choice("output", kept)?.unwrap_or(KeptOutput::Partial));
            }
            "stuck" => self.ending = Ending::Stuck { pings: keys.value("pings")?.unwrap_or(false) },
            "http" => self.http.push(HttpFault::read(&mut keys)?),
            "drop_submit" => self.answer = Answer::Dropped,
            "gateway" => {
                let status = HttpFault::status(&mut keys, GATEWAY_TIMEOUT)?;
                self.answer = Answer::Gateway { status, body: FaultBody::read(&mut keys)? };
            }
            "late_submit" => {
                self.answer = Answer::Late { ms: keys.value("ms")?.unwrap_or(LATE_MS) };
            }
            "no_id" => self.answer = Answer::WithoutId,
            "drop" => self.cut = Some(Cut::read(&mut keys)?),
            "no_stream" => self.refuses_attach = true,
            "no_terminal" => self.hides_terminal = true,
            "lost" => self.lost_after = Some(keys.value("after")?.unwrap_or(0)),
            "cancel" => self.cancel = CancelMode::read(&mut keys)?,
            "requires_action" => self.ending = Ending::RequiresAction,
            "quota" => self.http.push(HttpFault::quota(&mut keys)?),
            "flap404" => {
                self.hidden_ms = keys.value("ms")?.unwrap_or(0);
                let times = keys.value("times")?;
                self.flaps = times.unwrap_or(u64::from(self.hidden_ms == 0));
            }
            "malformed" => self.malformed = Some(Malformed::read(&mut keys)?),
            "slow" => self.slow = Some(Slow::read(&mut keys)?),
            "sse" => {
                self.sse = Sse::read(&mut keys)?;
                self.hides_terminal |= keys.value("no_terminal")?.unwrap_or(false);
            }
            "stale" => self.stale = Some(Stale::read(&mut keys)?),
            "ratelimit" => self.rate = Some(Rate::read(&mut keys)?),
            "retention" => self.retention_ms = Some(keys.value("ms")?.unwrap_or(0)),
            "cost" => self.cost = Some(Cost::read(&mut keys)?),
            "inject" => {
                let line = keys.at_most("line", MAX_LINE)?.unwrap_or(LONG_LINE);
                self.shape.hostile = Some(line);
            }
            name => match HttpFault::short(name) {
                Some(fault) => self.http.push(fault),
                None => return Err(format!("simulator: unknown scenario `{name}`")),
            },
        }
        self.shape.read(&mut keys)?;
        keys.all_used()
    }
}

impl Shape {
    fn read(&mut self, keys: &mut Keys<'_>) -> Result<(), String> {
        self.words = keys.at_most("words", MAX_WORDS)?.or(self.words);
        self.sources = keys.at_most("sources", MAX_SOURCES)?.or(self.sources);
        self.searches = keys.at_most("searches", MAX_SOURCES)?.or(self.searches);
        self.delay_ms = keys.value("delay_ms")?.or(self.delay_ms);
        self.hold = keys.value("hold")?.unwrap_or(self.hold);
        self.thinks = keys.value("thinks")?.unwrap_or(self.thinks);
        let markers = [("number", Markers::Number), ("web", Markers::Web), ("link", Markers::Link)];
        self.markers = keys.choice("markers", markers)?.unwrap_or(self.markers);
        let dates = [
            ("given", Dates::Given),
            ("null", Dates::Null),
            ("absent", Dates::Absent),
            ("mixed", Dates::Mixed),
        ];
        self.dates = keys.choice("dates", dates)?.unwrap_or(self.dates);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::CutAfter;

    #[test]
    fn every_scenario_in_the_table_is_understood_and_every_name_is_in_it() {
        let rows = GUIDE.lines().filter_map(|line| line.strip_prefix("| `"));
        let clauses: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        for clause in &clauses {
            let plain = clause.replace("\\|", "|");
            assert!(Scenario::parse(&plain).is_ok(), "{plain}");
        }
        let names: Vec<&str> =
            clauses.iter().filter_map(|clause| clause.split(';').next()).collect();
        for name in NAMES {
            assert!(names.contains(&name), "{name} is not in the table");
        }
        assert_eq!(names.len(), NAMES.len() + 1, "the short form of http is the only other");
    }

    #[test]
    fn clauses_add_up() {
        let scenario =
            Scenario::parse("http;status=503;times=2|ok;words=50;hold|drop;after_events=3")
                .unwrap();
        assert_eq!(scenario.http.len(), 1);
        assert_eq!(scenario.shape.words, Some(50));
        assert!(scenario.shape.hold);
        let cut = Cut { after: CutAfter::Events(3), times: 1, rst: false };
        assert_eq!(scenario.cut, Some(cut));
        assert_eq!(scenario.ending, Ending::Completed);
    }

    #[test]
    fn a_misspelt_scenario_is_refused() {
        for text in [
            "stukc",
            "ok;wrods=5",
            "ok;words=many",
            "fail;at=lunch",
            "http;status=200",
            "malformed;kind=odd",
            "cost",
            "cost;total=1;none",
            "drop;after_events=1;after_bytes=1",
            "200",
            "ok;words=2000000",
            "ok;words=1;words=2",
            "",
        ] {
            assert!(Scenario::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn faults_of_one_kind_follow_one_another_and_then_end() {
        let scenario =
            Scenario::parse("http;status=503;times=2|http;status=429;times=1|http;on=poll")
                .unwrap();
        let statuses: Vec<_> =
            (0..4).map(|nth| scenario.fault(Call::Submit, nth).map(|f| f.status)).collect();
        assert_eq!(statuses, [Some(503), Some(503), Some(429), None]);
        assert_eq!(scenario.fault(Call::Poll, 99).map(|f| f.status), Some(500));
        assert_eq!(scenario.fault(Call::Cancel, 0), None);
    }
}
