//! What a test asks of a run: parsed from text, decided before the run exists. The syntax is in the crate's docs.

use crate::clause::Keys;

/// Every clause name, for telling a scenario from an ordinary API key.
const NAMES: [&str; 12] = [
    "ok",
    "fail",
    "incomplete",
    "stuck",
    "http",
    "drop_submit",
    "no_id",
    "drop",
    "no_stream",
    "no_terminal",
    "lost",
    "cancel",
];

/// A slip like `words=60000000` must not eat the machine the tests run on.
const MOST_WORDS: usize = 1_000_000;
const MOST_SOURCES: usize = 10_000;

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
    pub(crate) lost: bool,
    pub(crate) ignores_cancel: bool,
}

/// The size and pace of a run; what is `None` follows from the effort.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    pub(crate) words: Option<usize>,
    pub(crate) sources: Option<usize>,
    pub(crate) searches: Option<usize>,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) hold: bool,
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
    Incomplete(Kept),
    Stuck {
        pings: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase {
    Search,
    Write,
}

/// How much output an incomplete run still shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kept {
    Partial,
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Times {
    Always,
    First(u64),
}

impl Times {
    /// Whether the `nth` occurrence, counted from 0, is among them.
    pub(crate) fn covers(self, nth: u64) -> bool {
        match self {
            Times::Always => true,
            Times::First(times) => nth < times,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HttpFault {
    pub(crate) status: u16,
    pub(crate) times: Times,
    pub(crate) on: Call,
    pub(crate) retry_after: Option<u64>,
    pub(crate) body: FaultBody,
    pub(crate) secret: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Call {
    Submit,
    Poll,
    Attach,
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FaultBody {
    Json,
    Html,
    Empty,
}

/// What the client hears of its submit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Answer {
    #[default]
    Full,
    WithoutId,
    Dropped,
}

/// Where the first streams of a run break off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) after_events: usize,
    pub(crate) times: u64,
}

impl Scenario {
    /// Chooses by header, then API key, then the last marker in the prompt.
    pub(crate) fn select(header: Option<&str>, key: &str, prompt: &str) -> Result<Self, String> {
        if let Some(text) = header {
            return Self::parse(text);
        }
        if let Some(text) = in_key(key) {
            return Self::parse(text);
        }
        in_prompt(prompt).map_or_else(|| Ok(Self::default()), Self::parse)
    }

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
                let kept = [("partial", Kept::Partial), ("empty", Kept::Nothing)];
                self.ending =
                    Ending::Incomplete(keys.choice("output", kept)?.unwrap_or(Kept::Partial));
            }
            "stuck" => self.ending = Ending::Stuck { pings: keys.value("pings")?.unwrap_or(false) },
            "http" => self.http.push(HttpFault::read(&mut keys)?),
            "drop_submit" => self.answer = Answer::Dropped,
            "no_id" => self.answer = Answer::WithoutId,
            "drop" => {
                self.cut = Some(Cut {
                    after_events: keys.value("after_events")?.unwrap_or(1),
                    times: keys.value("times")?.unwrap_or(1),
                })
            }
            "no_stream" => self.refuses_attach = true,
            "no_terminal" => self.hides_terminal = true,
            "lost" => self.lost = true,
            "cancel" => {
                let modes = [("ok", false), ("ignored", true)];
                self.ignores_cancel = keys.choice("mode", modes)?.unwrap_or(false);
            }
            name => return Err(format!("simulator: unknown scenario `{name}`")),
        }
        self.shape.read(&mut keys)?;
        keys.all_used()
    }
}

impl Shape {
    fn read(&mut self, keys: &mut Keys<'_>) -> Result<(), String> {
        self.words = keys.at_most("words", MOST_WORDS)?.or(self.words);
        self.sources = keys.at_most("sources", MOST_SOURCES)?.or(self.sources);
        self.searches = keys.at_most("searches", MOST_SOURCES)?.or(self.searches);
        self.delay_ms = keys.value("delay_ms")?.or(self.delay_ms);
        self.hold = keys.value("hold")?.unwrap_or(self.hold);
        Ok(())
    }
}

impl HttpFault {
    fn read(keys: &mut Keys<'_>) -> Result<Self, String> {
        let calls = [
            ("submit", Call::Submit),
            ("poll", Call::Poll),
            ("attach", Call::Attach),
            ("cancel", Call::Cancel),
        ];
        let bodies =
            [("json", FaultBody::Json), ("html", FaultBody::Html), ("empty", FaultBody::Empty)];
        let status = keys.value("status")?.unwrap_or(500);
        if !(300..=599).contains(&status) {
            return Err(format!("simulator: `status` must be 300 to 599, not {status}"));
        }
        Ok(Self {
            status,
            times: keys.times()?,
            on: keys.choice("on", calls)?.unwrap_or(Call::Submit),
            retry_after: keys.value("retry_after")?,
            body: keys.choice("body", bodies)?.unwrap_or(FaultBody::Json),
            secret: keys.value("secret")?,
        })
    }
}

/// A prompt without its markers: what the report is about.
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

/// The last marker wins: in a conversation the older turns still carry theirs.
fn in_prompt(prompt: &str) -> Option<&str> {
    let (_, marker) = prompt.rsplit_once("[[sim:")?;
    Some(marker.split_once("]]").map_or(marker, |(text, _)| text))
}

fn in_key(key: &str) -> Option<&str> {
    let (_, text) = key.split_once("sim-")?;
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if !NAMES.contains(&name) {
        return None;
    }
    Some(if rest.starts_with([';', '|']) { text } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_understood_and_documented() {
        let docs = include_str!("lib.rs");
        for name in NAMES {
            assert!(Scenario::parse(name).is_ok(), "{name}");
            assert!(docs.contains(&format!("//! | `{name}` |")), "{name} is not in the table");
        }
    }

    #[test]
    fn clauses_add_up() {
        let scenario =
            Scenario::parse("http;status=503;times=2|ok;words=50;hold|drop;after_events=3")
                .unwrap();
        assert_eq!(scenario.http.len(), 1);
        assert_eq!(scenario.shape.words, Some(50));
        assert!(scenario.shape.hold);
        assert_eq!(scenario.cut, Some(Cut { after_events: 3, times: 1 }));
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
            "ok;words=2000000",
            "ok;words=1;words=2",
            "",
        ] {
            assert!(Scenario::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_header_goes_before_the_key_and_the_key_before_the_prompt() {
        let pick = |header, key, prompt| Scenario::select(header, key, prompt).unwrap();
        assert!(pick(Some("lost"), "pplx-sim-no_id", "q [[sim:stuck]]").lost);
        assert_eq!(pick(None, "pplx-sim-no_id", "q [[sim:stuck]]").answer, Answer::WithoutId);
        assert_eq!(
            pick(None, "pplx-sim-key", "q [[sim:stuck]]").ending,
            Ending::Stuck { pings: false }
        );
        assert_eq!(pick(None, "pplx-key", "q"), Scenario::default());
    }

    #[test]
    fn a_key_may_carry_a_whole_scenario_or_only_its_name() {
        let whole = Scenario::select(None, "pplx-sim-http;status=429;times=2", "q").unwrap();
        assert_eq!(whole.fault(Call::Submit, 1).map(|fault| fault.status), Some(429));
        assert!(Scenario::select(None, "pplx-sim-lost-0042", "q").unwrap().lost);
    }

    #[test]
    fn the_last_marker_of_a_conversation_wins() {
        assert!(Scenario::select(None, "k", "a [[sim:stuck]] b [[sim:lost]] c").unwrap().lost);
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
    fn markers_are_no_part_of_the_question() {
        assert_eq!(without_markers("How [[sim:ok;words=3]] far? [[sim:lost]]"), "How  far?");
        assert_eq!(without_markers("How far? [[sim:unclosed"), "How far?");
    }
}
