//! A check of a report: one step for each source, then the verdicts. A step is what a journal stores, so that a check
//! can go on without fetching a source again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use url::Url;

use super::compare::{ClaimFacts, Evidence, PageFacts};
use super::facts::Vocabulary;
use super::fetch::{FetchError, Fetched, Fetcher};
use super::markdown::{CitedSource, Report};
use super::page::{Obstacle, Page, PdfReader, Unreadable};
use super::text::{Language, normalize};

/// The verdict about a claim. It states which facts were found in the source, never that a claim is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// One passage has all facts.
    Supported,
    /// A passage has at least half of the facts, or has them in another sense.
    Partly,
    /// A passage has everything but one fact, and another value in its place.
    Differs,
    /// The sources do not have the facts.
    NotFound,
    /// The claim has nothing that can be compared.
    NoFacts,
    /// The sources cannot be judged.
    Unchecked,
}

/// The verdict about a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceVerdict {
    /// The page was read.
    Ok,
    /// The page does not exist.
    Dead,
    /// The page redirects to the beginning of its site.
    Moved,
    /// The site shows the page only to people or members.
    Blocked,
    /// A rule forbids fetching the address.
    Refused,
    /// The local file is not the one that was read.
    Changed,
    /// The page did not answer.
    Unreachable,
    /// The answer is not text that can be read.
    Unreadable,
}

/// The reason a claim was not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The report has no source of that number.
    NoSource,
    /// The page does not exist.
    Dead,
    /// The page redirects to the beginning of its site.
    Moved,
    /// The site refuses robots or visitors without an account.
    Blocked,
    /// A rule forbids fetching the address.
    Refused,
    /// The local file has changed.
    Changed,
    /// The page did not answer.
    Unreachable,
    /// The answer is not text that can be read.
    Unreadable,
    /// The page shows a part of its text to visitors without a subscription.
    Paywall,
    /// The page waits for consent to cookies.
    CookieWall,
    /// Scripts produce the text of the page.
    ScriptShell,
    /// The page states that it does not exist.
    SoftNotFound,
    /// The page has too few words to deny anything.
    TooShort,
    /// The page is longer than what was read.
    Truncated,
    /// The page is in another language.
    OtherLanguage,
    /// The check reached its limit of time or bytes.
    Limit,
}

/// The result of one source: what a journal stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceStep {
    source: CitedSource,
    verdict: SourceVerdict,
    reason: Option<Reason>,
    final_url: Option<String>,
    title: Option<String>,
    http_status: Option<u16>,
    /// The reason a source was not fetched, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// For each claim that cites the source: its index and the comparison.
    evidence: Vec<(usize, Evidence)>,
}

impl SourceStep {
    /// The verdict, before it is known if another source answered.
    pub fn verdict(&self) -> SourceVerdict {
        self.verdict
    }

    /// The source.
    pub fn source(&self) -> &CitedSource {
        &self.source
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CitationCheck {
    /// The time of the check, as RFC 3339.
    pub checked_at: String,
    /// False if a limit ended the check early.
    pub complete: bool,
    /// The sources by number.
    pub sources: Vec<CheckedSource>,
    /// The claims in reading order.
    pub claims: Vec<CheckedClaim>,
    /// The number of claims of each verdict.
    pub totals: Totals,
}

/// A source and its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedSource {
    /// The number by which claims cite it.
    pub n: u32,
    /// The address.
    pub url: String,
    /// The verdict.
    pub verdict: SourceVerdict,
    /// The address after redirects, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// The title of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// The reason it was not fetched, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A claim and its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedClaim {
    /// The text that the citations cover.
    pub text: String,
    /// The numbers of the sources.
    pub citations: Vec<u32>,
    /// The verdict.
    pub verdict: ClaimVerdict,
    /// The passage with the facts, or with the other value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passage: Option<FoundPassage>,
    /// The other value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The facts that the passage does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// True if a number of the source was rounded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rounded: bool,
    /// The reason a claim was not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

/// A passage of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundPassage {
    /// The number of the source.
    pub n: u32,
    /// The text.
    pub text: String,
}

/// The number of claims of each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// All facts found.
    pub supported: usize,
    /// Some facts found.
    pub partly: usize,
    /// Another value found.
    pub differs: usize,
    /// No facts found.
    pub not_found: usize,
    /// Nothing to compare.
    pub no_facts: usize,
    /// No judgement possible.
    pub unchecked: usize,
}

/// A check of one report.
#[derive(Clone)]
pub struct Check {
    report: Arc<Report>,
    claims: Arc<[ClaimFacts]>,
    steps: BTreeMap<u32, SourceStep>,
}

impl Check {
    /// Begins a check.
    pub fn new(report: Report) -> Self {
        let mut vocabulary = Vocabulary::default();
        for text in &report.prose {
            vocabulary.add(&normalize(text));
        }
        let language = Language::of(&report.prose.join(" "));
        let claims =
            report.claims.iter().map(|claim| ClaimFacts::new(&claim.text, language, &vocabulary));
        let claims = claims.collect();
        Self { report: Arc::new(report), claims, steps: BTreeMap::new() }
    }

    /// The sources without a step.
    pub fn pending(&self) -> Vec<CitedSource> {
        let sources = self.report.sources.iter();
        sources.filter(|source| !self.steps.contains_key(&source.number)).cloned().collect()
    }

    /// Records the step of a source: a new one, or one that a journal stored.
    pub fn record(&mut self, step: SourceStep) {
        self.steps.insert(step.source.number, step);
    }

    /// Compares a page with the claims that cite it. Takes processor time, and waits for nothing.
    pub fn judge(
        &self,
        source: &CitedSource,
        fetched: &Result<Fetched, FetchError>,
        pdf: Option<&PdfReader>,
    ) -> SourceStep {
        let mut step = SourceStep {
            source: source.clone(),
            verdict: SourceVerdict::Unreachable,
            reason: Some(Reason::Unreachable),
            final_url: None,
            title: None,
            http_status: None,
            detail: None,
            evidence: Vec::new(),
        };
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(error) => {
                step.detail = Some(error.detail());
                let mut fail =
                    |verdict, reason| (step.verdict, step.reason) = (verdict, Some(reason));
                match error {
                    FetchError::Refused(_) => fail(SourceVerdict::Refused, Reason::Refused),
                    FetchError::NoSuchName => fail(SourceVerdict::Dead, Reason::Dead),
                    FetchError::Undecodable => fail(SourceVerdict::Unreadable, Reason::Unreadable),
                    FetchError::CheckLimit => fail(SourceVerdict::Unreachable, Reason::Limit),
                    FetchError::Timeout
                    | FetchError::Failed(_)
                    | FetchError::TooManyRedirects
                    | FetchError::HeadersTooLong => {}
                }
                return step;
            }
        };
        step.http_status = Some(fetched.status);
        let is_redirected = Url::parse(&source.url).is_ok_and(|mut cited| {
            cited.set_fragment(None);
            cited != fetched.url
        });
        step.final_url = is_redirected.then(|| fetched.url.to_string());
        let mut fail = |verdict, reason| (step.verdict, step.reason) = (verdict, Some(reason));
        match fetched.status {
            200 | 203 => {}
            404 | 410 => fail(SourceVerdict::Dead, Reason::Dead),
            401 | 403 | 429 => fail(SourceVerdict::Blocked, Reason::Blocked),
            503 if fetched.is_challenge => fail(SourceVerdict::Blocked, Reason::Blocked),
            201..=299 => fail(SourceVerdict::Unreadable, Reason::Unreadable),
            _ => {}
        }
        if !matches!(fetched.status, 200 | 203) {
            return step;
        }
        let page = match Page::read(fetched, pdf) {
            Ok(page) => page,
            Err(
                Unreadable::MediaType | Unreadable::Pdf | Unreadable::Encoding | Unreadable::Empty,
            ) => {
                fail(SourceVerdict::Unreadable, Reason::Unreadable);
                return step;
            }
        };
        (step.verdict, step.reason) = match page.obstacle {
            _ if is_moved(&source.url, &fetched.url) => (SourceVerdict::Moved, Some(Reason::Moved)),
            Some(Obstacle::Captcha) => (SourceVerdict::Blocked, Some(Reason::Blocked)),
            Some(
                Obstacle::Paywall
                | Obstacle::CookieWall
                | Obstacle::ScriptShell
                | Obstacle::SoftNotFound,
            )
            | None => (SourceVerdict::Ok, None),
        };
        step.title = page.title.clone();
        if step.verdict == SourceVerdict::Ok {
            self.compare(&mut step, &page);
        }
        step
    }

    fn compare(&self, step: &mut SourceStep, page: &Page) {
        let number = step.source.number;
        let citing = self
            .report
            .claims
            .iter()
            .enumerate()
            .filter(|(_, claim)| claim.citations.contains(&number));
        let citing: Vec<_> = citing.map(|(at, _)| at).collect();
        if !citing.is_empty() {
            let facts = PageFacts::new(page);
            step.evidence =
                citing.into_iter().map(|at| (at, facts.compare(&self.claims[at]))).collect();
        }
    }

    /// Fetches and judges the sources without a step, and records each. `progress` is called with every step and the
    /// number of sources that are left; it may store the step.
    pub async fn run(
        &mut self,
        fetcher: Arc<Fetcher>,
        pdf: Option<PdfReader>,
        mut progress: impl FnMut(&SourceStep, usize),
    ) {
        let mut by_address: HashMap<String, Vec<CitedSource>> = HashMap::new();
        for source in self.pending() {
            let address = source.url.split('#').next().unwrap_or("").to_owned();
            by_address.entry(address).or_default().push(source);
        }
        let mut left: usize = by_address.values().map(Vec::len).sum();
        let room = Arc::new(Semaphore::new(fetcher.at_once()));
        let check = Arc::new(self.clone());
        let mut tasks = JoinSet::new();
        for (address, sources) in by_address {
            let (fetcher, pdf, room, check) =
                (fetcher.clone(), pdf.clone(), room.clone(), check.clone());
            tasks.spawn(async move {
                let turn = fetcher.turn(&address).await;
                // Bodies that wait to be judged are limited as well as those that are being fetched.
                let _room = room.acquire_owned().await;
                let fetched = fetcher.fetch_in_turn(&address, turn).await;
                let judge = move || {
                    let judge = |source| check.judge(source, &fetched, pdf.as_ref());
                    sources.iter().map(judge).collect::<Vec<_>>()
                };
                tokio::task::spawn_blocking(judge).await
            });
        }
        while let Some(done) = tasks.join_next().await {
            // A panic while judging one page must not lose the others: its source stays without a step.
            let Ok(Ok(steps)) = done else { continue };
            for step in steps {
                left -= 1;
                progress(&step, left);
                self.record(step);
            }
        }
    }

    /// Returns the verdicts.
    pub fn finish(&self, checked_at: String) -> CitationCheck {
        let has_answer = |step: &SourceStep| step.http_status.is_some();
        let answered = self.steps.values().filter(|step| has_answer(step)).count();
        let mut complete = true;
        let sources: Vec<_> = self
            .report
            .sources
            .iter()
            .map(|source| {
                let step = self.steps.get(&source.number);
                complete &= step.is_some_and(|step| step.reason != Some(Reason::Limit));
                let others = answered - usize::from(step.is_some_and(has_answer));
                let verdict = match step.map(|step| step.verdict) {
                    // A name server or a gateway of this machine may be at fault.
                    Some(SourceVerdict::Dead) if others == 0 => SourceVerdict::Unreachable,
                    Some(verdict) => verdict,
                    None => SourceVerdict::Unreachable,
                };
                CheckedSource {
                    n: source.number,
                    url: source.url.clone(),
                    verdict,
                    final_url: step.and_then(|step| step.final_url.clone()),
                    title: step.and_then(|step| step.title.clone()),
                    http_status: step.and_then(|step| step.http_status),
                    detail: step.and_then(|step| step.detail.clone()),
                }
            })
            .collect();
        let verdicts: HashMap<_, _> =
            sources.iter().map(|source| (source.n, source.verdict)).collect();
        let claims: Vec<_> =
            (0..self.claims.len()).map(|at| self.judge_claim(at, &verdicts)).collect();
        let mut totals = Totals::default();
        for claim in &claims {
            *match claim.verdict {
                ClaimVerdict::Supported => &mut totals.supported,
                ClaimVerdict::Partly => &mut totals.partly,
                ClaimVerdict::Differs => &mut totals.differs,
                ClaimVerdict::NotFound => &mut totals.not_found,
                ClaimVerdict::NoFacts => &mut totals.no_facts,
                ClaimVerdict::Unchecked => &mut totals.unchecked,
            } += 1;
        }
        CitationCheck { checked_at, complete, sources, claims, totals }
    }

    /// Judges a claim by the union of its sources.
    fn judge_claim(&self, at: usize, verdicts: &HashMap<u32, SourceVerdict>) -> CheckedClaim {
        let claim = &self.report.claims[at];
        let facts = &self.claims[at].facts;
        let mut checked = CheckedClaim {
            text: claim.text.clone(),
            citations: claim.citations.clone(),
            verdict: ClaimVerdict::NoFacts,
            passage: None,
            found: None,
            missing: Vec::new(),
            rounded: false,
            reason: None,
        };
        if facts.iter().all(|fact| fact.weak) {
            return checked;
        }
        let mut evidence: Vec<(u32, &Evidence)> = Vec::new();
        let mut unread = None;
        for number in &claim.citations {
            let step = self.steps.get(number);
            let found = step.and_then(|step| step.evidence.iter().find(|(claim, _)| *claim == at));
            match found {
                Some((_, found)) => evidence.push((*number, found)),
                None => {
                    let reason = match (verdicts.get(number), step.and_then(|step| step.reason)) {
                        (None, _) => Reason::NoSource,
                        (Some(SourceVerdict::Unreachable), Some(Reason::Dead)) => {
                            Reason::Unreachable
                        }
                        (Some(_), reason) => reason.unwrap_or(Reason::Unreachable),
                    };
                    unread.get_or_insert(reason);
                }
            }
        }
        if evidence.is_empty() {
            checked.verdict = ClaimVerdict::Unchecked;
            checked.reason = unread;
            return checked;
        }
        let strong: Vec<_> = (0..facts.len())
            .filter(|fact| {
                !facts[*fact].weak && !evidence.iter().any(|(_, found)| found.subject[*fact])
            })
            .collect();
        if strong.is_empty() {
            return checked;
        }
        let count = |found: &Evidence| strong.iter().filter(|fact| found.found[**fact]).count();
        let missing: Vec<_> = strong
            .iter()
            .copied()
            .filter(|fact| !evidence.iter().any(|(_, found)| found.found[*fact]))
            .collect();
        let matched = strong.len() - missing.len();
        // The source that has most, and of several the one that has it in the same sense.
        let best = evidence.iter().max_by_key(|(number, found)| {
            (count(found), !found.is_lowered, std::cmp::Reverse(*number))
        });
        let Some((number, best)) = best else { return checked };
        checked.missing = missing.iter().map(|fact| facts[*fact].text.clone()).collect();
        checked.rounded = best.is_rounded;
        let passage = |number: u32, found: &Evidence| {
            found.passage.clone().map(|text| FoundPassage { n: number, text })
        };
        checked.passage = passage(*number, best);
        let other =
            evidence.iter().find(|(_, found)| missing.len() == 1 && found.other_value.is_some());
        let cannot_deny =
            unread.or_else(|| evidence.iter().find_map(|(_, found)| found.cannot_deny));
        checked.verdict = if missing.is_empty() {
            let is_lowered = evidence
                .iter()
                .filter(|(_, found)| count(found) > 0)
                .all(|(_, found)| found.is_lowered);
            if is_lowered { ClaimVerdict::Partly } else { ClaimVerdict::Supported }
        } else if let Some((number, found)) = other.filter(|_| unread.is_none()) {
            checked.found.clone_from(&found.other_value);
            checked.passage = passage(*number, found);
            ClaimVerdict::Differs
        } else if matched * 2 >= strong.len() && matched > 0 {
            ClaimVerdict::Partly
        } else if let Some(reason) = cannot_deny {
            checked.reason = Some(reason);
            ClaimVerdict::Unchecked
        } else {
            ClaimVerdict::NotFound
        };
        checked
    }
}

/// Returns true if a page's address leads to the beginning of its site.
fn is_moved(cited: &str, reached: &Url) -> bool {
    let is_root = |url: &Url| url.path() == "/" && url.query().is_none();
    Url::parse(cited).is_ok_and(|cited| !is_root(&cited)) && is_root(reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILL: &str =
        "Words that fill the page and state nothing of interest to anybody who reads it. ";

    fn page(body: &str) -> Result<Fetched, FetchError> {
        let body = format!(
            "<html lang=en><title>Lake Vostok</title><main><h1>Lake Vostok</h1>{body}<p>{}</p></main>",
            FILL.repeat(20)
        );
        Ok(Fetched {
            url: Url::parse("https://a.example/p").unwrap(),
            status: 200,
            content_type: "text/html".to_owned(),
            is_challenge: false,
            body: body.into_bytes(),
            truncated: false,
        })
    }

    fn check(claim: &str, body: &str) -> CheckedClaim {
        let report = Report::parse(&format!("{claim} [1]\n\n[1]: https://a.example/p\n"));
        let mut check = Check::new(report);
        let source = check.pending().remove(0);
        let step = check.judge(&source, &page(body), None);
        let stored = serde_json::to_string(&step).unwrap();
        check.record(serde_json::from_str(&stored).unwrap());
        check.finish("2026-01-01T00:00:00Z".to_owned()).claims.remove(0)
    }

    const BODY: &str = "<p>Lake Vostok is 250 km long and has an area of 12,513 km². It was discovered by Andrey Kapitsa in \
        1959. The station was opened on 16 December 1957.</p><p>The temperature rose by 3.2 % in Antarctica. Water does not \
        leave the lake. Researchers wrote that \"the water has been cut off for millions of years\" there.</p>\
        <table><tr><th>Lake<th>Depth (m)<th>Volume (km3)<tr><td>Baikal<td>1,642<td>23,600<tr><td>Tanganyika<td>1,470<td>18,900</table>";

    /// J2
    #[test]
    fn every_verdict_follows_from_the_facts_of_the_sentence() {
        use ClaimVerdict::*;
        let cases = [
            ("Lake Vostok has an area of 12,513 km2.", Supported, ""),
            ("Lake Vostok covers about 12,500 km².", Supported, ""),
            ("The area of the lake is 12,531 km².", Differs, "12,513 km2"),
            ("The lake has an area of 12,513 square miles.", Differs, "12,513 km2"),
            ("The lake is 250 km long.", Supported, ""),
            ("The lake is 280 km long.", Differs, "250 km"),
            ("It was discovered by Andrey Kapitsa.", Supported, ""),
            ("It was discovered by Ivan Petrov.", NotFound, ""),
            ("The station was opened on 16 December 1957.", Supported, ""),
            ("The station was opened on 18 December 1957.", Differs, "16 December 1957"),
            ("The temperature rose by 3.2 percent.", Supported, ""),
            ("The temperature fell by 3.2 percent.", Partly, ""),
            ("The temperature did not rise by 3.2 percent.", Partly, ""),
            (
                "They wrote that \"the water has been cut off for millions of years\".",
                Supported,
                "",
            ),
            (
                "They wrote that \"the water has been cut off for thousands of years\".",
                Differs,
                "the water has been cut off for millions of years",
            ),
            ("Baikal has a depth of 1,642 m.", Supported, ""),
            ("Tanganyika has a depth of 1,642 m.", Differs, "1,470"),
            ("Tanganyika has a depth of 18,900 m.", Partly, ""),
            ("The lake is beautiful.", NoFacts, ""),
            ("In 1959 it was found.", NoFacts, ""),
            ("Its ice is 3,700 m thick and 400,000 years old, says Martin Siegert.", NotFound, ""),
        ];
        for (claim, verdict, found) in cases {
            let checked = check(claim, BODY);
            assert_eq!(
                (checked.verdict, checked.found.as_deref().unwrap_or("")),
                (verdict, found),
                "{claim}: {checked:#?}"
            );
        }
    }

    /// J2
    #[test]
    fn a_page_that_hides_its_text_denies_nothing() {
        let claim = "The lake has 4,711 islands, and the largest of them is in the north of it.";
        let with = |change: &dyn Fn(&mut Fetched)| {
            let report = Report::parse(&format!("{claim} [1]\n\n[1]: https://a.example/p\n"));
            let mut check = Check::new(report);
            let mut fetched = page(BODY);
            change(fetched.as_mut().unwrap());
            check.record(check.judge(&check.pending()[0], &fetched, None));
            let done = check.finish(String::new());
            (done.sources[0].verdict, done.claims[0].verdict, done.claims[0].reason)
        };
        use {ClaimVerdict as C, SourceVerdict as S};
        assert_eq!(with(&|_| {}), (S::Ok, C::NotFound, None));
        assert_eq!(
            with(&|page| page.truncated = true),
            (S::Ok, C::Unchecked, Some(Reason::Truncated))
        );
        assert_eq!(
            with(&|page| page.status = 403),
            (S::Blocked, C::Unchecked, Some(Reason::Blocked))
        );
        assert_eq!(
            with(&|page| page.status = 404),
            (S::Unreachable, C::Unchecked, Some(Reason::Unreachable))
        );
        assert_eq!(
            with(&|page| page.is_challenge = true),
            (S::Blocked, C::Unchecked, Some(Reason::Blocked))
        );
        assert_eq!(
            with(&|page| page.body = b"<p>Short.".to_vec()),
            (S::Ok, C::Unchecked, Some(Reason::TooShort))
        );
        let root = |page: &mut Fetched| page.url = Url::parse("https://a.example/").unwrap();
        assert_eq!(with(&root), (S::Moved, C::Unchecked, Some(Reason::Moved)));
        let german = "<html lang=de><p>".to_owned()
            + &"Der See ist nicht der größte und auch nicht der kleinste. ".repeat(40);
        assert_eq!(
            with(&|page| page.body = german.clone().into()),
            (S::Ok, C::Unchecked, Some(Reason::OtherLanguage))
        );
    }

    /// J2
    #[test]
    fn adjacent_citations_are_judged_together_and_a_dead_source_needs_a_witness() {
        let text = "The lake is 250 km long and was found by Ivan Petrov [1][2].\n\n[1]: https://a.example/p\n[2]: https://a.example/q\n";
        let mut check = Check::new(Report::parse(text));
        let sources = check.pending();
        check.record(check.judge(&sources[0], &page(BODY), None));
        check.record(check.judge(&sources[1], &Err(FetchError::NoSuchName), None));
        let done = check.finish(String::new());
        assert_eq!(done.sources[1].verdict, SourceVerdict::Dead);
        assert_eq!(done.claims[0].verdict, ClaimVerdict::Partly);
        assert_eq!(done.claims[0].missing, ["Ivan Petrov"]);
        check.record(check.judge(
            &sources[1],
            &page("<p>It was found by Ivan Petrov, a man of science.</p>"),
            None,
        ));
        assert_eq!(check.finish(String::new()).claims[0].verdict, ClaimVerdict::Supported);
    }

    /// J1
    #[test]
    fn a_marker_without_a_source_is_reported() {
        let check = Check::new(Report::parse("It is 250 km long [7]."));
        let done = check.finish(String::new());
        assert!(done.complete && done.sources.is_empty());
        assert_eq!(done.claims[0].reason, Some(Reason::NoSource));
    }
}
