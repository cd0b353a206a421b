//! Where the scenario of a request comes from: a header, the API key, the question, the queue.

use super::{NAMES, Scenario};
use crate::faults::HttpFault;

impl Scenario {
    /// Chooses by header, then API key, then the last marker in the prompt, then what is queued.
    pub(crate) fn select(
        header: Option<&str>,
        key: &str,
        prompt: &str,
        queued: impl FnOnce() -> Option<Self>,
    ) -> Result<Self, String> {
        match header.or_else(|| in_key(key)).or_else(|| in_prompt(prompt)) {
            Some(text) => Self::parse(text),
            None => Ok(queued().unwrap_or_default()),
        }
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
    if !NAMES.contains(&name) && HttpFault::short(name).is_none() {
        return None;
    }
    Some(if rest.starts_with([';', '|']) { text } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Call;
    use crate::scenario::{Answer, Ending};

    fn pick(header: Option<&str>, key: &str, prompt: &str) -> Scenario {
        Scenario::select(header, key, prompt, || None).unwrap()
    }

    #[test]
    fn the_header_goes_before_the_key_and_the_key_before_the_prompt() {
        assert!(pick(Some("lost"), "pplx-sim-no_id", "q [[sim:stuck]]").lost_after.is_some());
        assert_eq!(pick(None, "pplx-sim-no_id", "q [[sim:stuck]]").answer, Answer::WithoutId);
        assert_eq!(
            pick(None, "pplx-sim-key", "q [[sim:stuck]]").ending,
            Ending::Stuck { pings: false }
        );
        assert_eq!(pick(None, "pplx-key", "q"), Scenario::default());
    }

    #[test]
    fn what_is_queued_comes_last() {
        let queued = || Some(Scenario::parse("stuck").unwrap());
        let select = |prompt| Scenario::select(None, "k", prompt, queued).unwrap();
        assert_eq!(select("q").ending, Ending::Stuck { pings: false });
        assert_eq!(select("q [[sim:ok]]").ending, Ending::Completed);
    }

    #[test]
    fn a_key_may_carry_a_whole_scenario_or_only_its_name() {
        let whole = pick(None, "pplx-sim-http;status=429;times=2", "q");
        assert_eq!(whole.fault(Call::Submit, 1).map(|fault| fault.status), Some(429));
        assert!(pick(None, "pplx-sim-lost-0042", "q").lost_after.is_some());
        assert_eq!(pick(None, "pplx-sim-429x2", "q").http.len(), 1);
    }

    #[test]
    fn the_last_marker_of_a_conversation_wins() {
        assert!(pick(None, "k", "a [[sim:stuck]] b [[sim:lost]] c").lost_after.is_some());
    }

    #[test]
    fn markers_are_no_part_of_the_question() {
        assert_eq!(without_markers("How [[sim:ok;words=3]] far? [[sim:lost]]"), "How  far?");
        assert_eq!(without_markers("How far? [[sim:unclosed"), "How far?");
    }
}
