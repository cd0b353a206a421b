//! The behaviour that a test requests for a run: parsed from text, fixed before the run exists. The syntax is
//! described in the crate documentation.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::faults::{
    Call, CancelFault, Channel, Cost, Cut, HttpFault, Malformed, Rate, Slow, Sse, Stale,
};

/// The scenarios and their keys as a Markdown table.
pub const GUIDE: &str = include_str!("scenarios.md");

/// Every clause, with its default keys.
const CLAUSES: [(&str, &str); 27] = [
    ("ok", ""),
    ("fail", "at=write;code=server_error"),
    ("incomplete", "output=partial"),
    ("stuck", "pings=false"),
    ("requires_action", ""),
    ("http", "status=500;on=submit;body=json;quota=false"),
    ("quota", "status=401;on=submit;body=json;quota"),
    ("ratelimit", "rpm=50;on=submit;retry_after=false"),
    ("drop_submit", ""),
    ("drop_create", ""),
    // Longer than a test waits for the list to show it.
    ("late_list", "ms=60000"),
    ("gateway", "status=504;on=submit;body=json;quota=false"),
    // Longer than a test waits for a response.
    ("late_submit", "ms=60000"),
    ("no_id", ""),
    ("drop", "times=1;rst=false"),
    ("no_stream", ""),
    ("no_terminal", ""),
    ("sse", ""),
    ("slow", "first_byte_ms=0;chunk_ms=1;chunk_bytes=1"),
    ("malformed", "kind=truncated;bytes=67108864"),
    ("lost", "after=0"),
    ("flap404", "ms=0"),
    ("stale", "polls=1;backwards=false"),
    ("retention", "ms=0"),
    ("cancel", "mode=ok;ms=5000"),
    ("cost", "none=false"),
    // Longer than terminals, logs and many parsers accept in one line.
    ("inject", "line=1000000"),
];

/// The keys of the run itself, which are allowed in any clause.
const SHAPE_KEYS: [&str; 10] = [
    "words", "chunks", "sources", "searches", "delay_ms", "hold", "thinks", "rich", "markers",
    "dates",
];

/// The behaviour of one run from its submit to its last poll. Each field except the first three is the clause
/// of that name.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) shape: Shape,
    pub(crate) ending: Ending,
    pub(crate) answer: SubmitAnswer,
    pub(crate) http: Vec<HttpFault>,
    pub(crate) drop: Option<Cut>,
    pub(crate) no_stream: bool,
    pub(crate) no_terminal: bool,
    /// The first response to the creation of a session is lost.
    pub(crate) drop_create: bool,
    /// The number of milliseconds for which a list does not show sent messages.
    pub(crate) late_list: Option<u64>,
    /// The number of GETs after which the run cannot be found.
    pub(crate) lost: Option<u64>,
    pub(crate) flap404: Option<Flap>,
    pub(crate) cancel: Option<CancelFault>,
    pub(crate) malformed: Option<Malformed>,
    pub(crate) slow: Option<Slow>,
    pub(crate) sse: Sse,
    pub(crate) stale: Option<Stale>,
    pub(crate) ratelimit: Option<Rate>,
    /// The number of milliseconds for which a finished run can be found.
    pub(crate) retention: Option<u64>,
    pub(crate) cost: Option<Cost>,
    /// The length of the longest line of hostile text, if there is any.
    pub(crate) inject: Option<usize>,
}

/// The size and pace of a run; `None` values follow from the effort.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(crate) struct Shape {
    pub(crate) words: Option<usize>,
    /// The number of events that the text arrives in.
    pub(crate) chunks: Option<usize>,
    pub(crate) sources: Option<usize>,
    pub(crate) searches: Option<usize>,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) hold: bool,
    /// Writes thoughts between think tags before the report, even if the API has none.
    pub(crate) thinks: bool,
    /// Adds a table, tasks, formulas, footnotes and the like to the report.
    pub(crate) rich: bool,
    pub(crate) markers: Markers,
    pub(crate) dates: Dates,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Ending {
    #[default]
    Completed,
    Fail {
        at: Phase,
        code: String,
        times: Option<u64>,
    },
    Incomplete {
        output: KeptOutput,
        /// The API's name of the limit that was reached; unset means the usual one.
        reason: Option<String>,
    },
    Stuck {
        pings: bool,
    },
    /// Waits for its client to run a tool.
    RequiresAction {},
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    Search,
    Write,
}

/// The part of the output that an incomplete run still shows.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeptOutput {
    Partial,
    Empty,
}

/// The response to a submit.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum SubmitAnswer {
    #[default]
    Full,
    NoId {},
    DropSubmit {},
    /// A proxy between the client and the API responds instead.
    Gateway(HttpFault),
    LateSubmit {
        ms: u64,
    },
}

/// The format of citations in the text.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Markers {
    /// `[3]`, the number of the source.
    #[default]
    Number,
    /// `[web:2]`, counted from 0.
    Web,
    /// `[3](https://...)`
    Link,
    /// `([site](address))`, the format and default of OpenAI.
    Cited,
}

/// The sources that have dates.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Dates {
    #[default]
    Given,
    Null,
    Absent,
    /// Some given, some null, some absent.
    Mixed,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flap {
    /// The number of GETs that do not find the run; unset means one if `ms` is 0.
    pub(crate) times: Option<u64>,
    /// The time after its submit for which no GET finds the run.
    pub(crate) ms: u64,
}

impl Scenario {
    /// Selects the scenario by the last marker in the prompt, then from the queue.
    pub(crate) fn select(
        prompt: &str,
        queued: impl FnOnce() -> Option<Self>,
    ) -> Result<Self, String> {
        // The last marker wins, because the earlier turns of a conversation still contain theirs.
        let Some((_, marker)) = prompt.rsplit_once("[[sim:") else {
            return Ok(queued().unwrap_or_default());
        };
        Self::parse(marker.split_once("]]").map_or(marker, |(text, _)| text))
    }

    /// Parses `name;key=value;...|name;...`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut fields = json!({"shape": {}, "http": []});
        for clause in text.split('|') {
            add_clause(&mut fields, clause)?;
        }
        let scenario: Self =
            serde_json::from_value(fields).map_err(|error| format!("simulator: {error}"))?;
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), String> {
        // A typo like `words=60000000` must not exhaust the machine that runs the tests.
        for (key, value, most) in [
            ("words", self.shape.words, 1_000_000),
            ("sources", self.shape.sources, 10_000),
            ("searches", self.shape.searches, 10_000),
            ("line", self.inject, 64_000_000),
            ("bytes", self.malformed.map(|malformed| malformed.bytes), 1 << 30),
        ] {
            if value > Some(most) {
                return Err(format!("simulator: `{key}` is at most {most}"));
            }
        }
        let gateway = match &self.answer {
            SubmitAnswer::Gateway(fault) => Some(fault),
            _ => None,
        };
        for HttpFault { status, .. } in self.http.iter().chain(gateway) {
            if !(300..=599).contains(status) {
                return Err(format!("simulator: `status` must be 300 to 599, not {status}"));
            }
        }
        if self.drop.is_some_and(|cut| cut.after_events.is_some() && cut.after_bytes.is_some()) {
            return Err("simulator: `drop` is after events or after bytes".to_owned());
        }
        if self.cost.is_some_and(|cost| cost.total.is_some() == cost.none) {
            return Err("simulator: `cost` is `total=` dollars or `none`".to_owned());
        }
        Ok(())
    }

    /// Returns the error for the `nth` request of this kind, counted from 0.
    pub(crate) fn fault(&self, on: Call, mut nth: u64) -> Option<&HttpFault> {
        for fault in self.http.iter().filter(|fault| fault.on == on) {
            match fault.times {
                Some(times) if nth >= times => nth -= times,
                _ => return Some(fault),
            }
        }
        None
    }

    /// Returns the malformation of the `nth` response of this kind, counted from 0.
    pub(crate) fn malformation(&self, channel: Channel, nth: u64) -> Option<Malformed> {
        let affects = |fault: &Malformed| {
            fault.affects(channel) && fault.times.is_none_or(|times| nth < times)
        };
        self.malformed.filter(affects)
    }

    /// Returns the name of the limit at which a run ends, if the scenario has one.
    pub(crate) fn limit_reached(&self) -> Option<&str> {
        match &self.ending {
            Ending::Incomplete { reason, .. } => reason.as_deref(),
            _ => None,
        }
    }

    pub(crate) fn hides_terminal(&self) -> bool {
        self.no_terminal || self.sse.no_terminal
    }
}

/// A prompt without its markers: the subject of the report.
pub(crate) fn without_markers(prompt: &str) -> String {
    let mut rest = prompt;
    let mut plain = String::new();
    while let Some((before, marker)) = rest.split_once("[[sim:") {
        plain.push_str(before);
        rest = marker.split_once("]]").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain.trim().to_owned()
}

/// Adds one clause to the JSON of its scenario.
fn add_clause(scenario: &mut Value, clause: &str) -> Result<(), String> {
    let long = long_form(clause);
    let clause = long.as_deref().unwrap_or(clause);
    let (name, keys) = clause.split_once(';').unwrap_or((clause, ""));
    let name = name.trim();
    let Some((name, defaults)) = CLAUSES.into_iter().find(|(known, _)| *known == name) else {
        return Err(format!("simulator: unknown scenario `{name}`"));
    };
    let mut fields = json!({});
    for (key, value) in pairs(defaults) {
        fields[key] = value;
    }
    let mut seen = Vec::new();
    for (key, value) in pairs(keys) {
        if seen.contains(&key) {
            return Err(format!("simulator: `{key}` occurs twice in `{clause}`"));
        }
        seen.push(key);
        let of_the_run = SHAPE_KEYS.contains(&key);
        let object = if of_the_run { &mut scenario["shape"] } else { &mut fields };
        object[key] = value;
    }
    match (name, &mut scenario["http"]) {
        ("ok", _) if fields == json!({}) => {}
        ("no_stream" | "no_terminal" | "drop_create", _) if fields == json!({}) => {
            scenario[name] = true.into()
        }
        ("http" | "quota", Value::Array(faults)) => faults.push(fields),
        ("fail" | "incomplete" | "stuck" | "requires_action", _) => {
            scenario["ending"] = json!({name: fields});
        }
        ("drop_submit" | "gateway" | "late_submit" | "no_id", _) => {
            scenario["answer"] = json!({name: fields});
        }
        // A clause with one key has the value of that key; with further keys it is an object, which is refused.
        ("lost" | "retention" | "inject" | "late_list", _) => {
            let keys: Vec<&Value> =
                fields.as_object().into_iter().flat_map(|keys| keys.values()).collect();
            scenario[name] = if let [only] = keys.as_slice() { (*only).clone() } else { fields };
        }
        _ => scenario[name] = fields,
    }
    Ok(())
}

/// Expands `503x2`.
fn long_form(clause: &str) -> Option<String> {
    let (name, keys) = clause.split_once(';').unwrap_or((clause, ""));
    let (status, times) = name.trim().split_once('x').unwrap_or((name.trim(), ""));
    let status: u16 = status.parse().ok()?;
    let times = if name.contains('x') { format!("times={times};") } else { String::new() };
    Some(format!("http;status={status};{times}{keys}"))
}

/// Splits keys and values; a bare key means `true`.
fn pairs(keys: &str) -> impl Iterator<Item = (&str, Value)> {
    keys.split(';').map(str::trim).filter(|part| !part.is_empty()).map(|part| {
        let (key, value) = part.split_once('=').unwrap_or((part, "true"));
        let value = value.trim();
        let value = match serde_json::from_str(value) {
            Ok(value @ (Value::Bool(_) | Value::Number(_))) => value,
            _ => value.into(),
        };
        (key.trim(), value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (name, _) in CLAUSES {
            assert!(names.contains(&name), "{name} is not in the table");
        }
        assert_eq!(names.len(), CLAUSES.len() + 1, "the short form of http is the only other");
    }

    #[test]
    fn clauses_add_up() {
        let scenario =
            Scenario::parse("http;status=503;times=2|ok;words=50;hold|drop;after_events=3")
                .unwrap();
        assert_eq!(scenario.http.len(), 1);
        assert_eq!(scenario.shape.words, Some(50));
        assert!(scenario.shape.hold);
        let cut = Cut { after_events: Some(3), after_bytes: None, times: 1, rst: false };
        assert_eq!(scenario.drop, Some(cut));
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

    #[test]
    fn the_short_form_of_an_error_has_a_status_and_a_count() {
        let fault = |text| Scenario::parse(text).unwrap().http.remove(0);
        assert_eq!((fault("429x2").status, fault("429x2").times), (429, Some(2)));
        assert_eq!(fault("503").times, None);
        for name in ["200", "42x", "x2", "429x", "4290"] {
            assert!(Scenario::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_marker_goes_before_the_queue_and_the_last_marker_before_others() {
        let queued = || Some(Scenario::parse("stuck").unwrap());
        let select = |prompt| Scenario::select(prompt, queued).unwrap();
        assert_eq!(select("q").ending, Ending::Stuck { pings: false });
        assert_eq!(select("q [[sim:ok]]").ending, Ending::Completed);
        assert!(select("a [[sim:stuck]] b [[sim:lost]] c").lost.is_some());
        assert_eq!(Scenario::select("q", || None), Ok(Scenario::default()));
    }

    #[test]
    fn markers_are_not_part_of_the_question() {
        assert_eq!(without_markers("How [[sim:ok;words=3]] far? [[sim:lost]]"), "How  far?");
        assert_eq!(without_markers("How far? [[sim:unclosed"), "How far?");
    }
}
