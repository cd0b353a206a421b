//! A check of a report: one step for each source, then the verdicts. A step is what a journal stores, so that a check
//! can go on without fetching a source again.

mod result;
mod run;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

pub use self::result::{
    CheckedClaim, CheckedSource, CitationCheck, ClaimVerdict, FoundPassage, Reason, SourceVerdict,
    Totals,
};
pub use self::run::{LocalReader, LocalSource, SourceReaders, StepRecord, StepRecorder};
use super::compare::{ClaimFacts, Evidence, PageFacts};
use super::facts::Vocabulary;
use super::fetch::{FetchError, FetchedPage};
use super::markdown::{CitedSource, Report};
use super::page::{Obstacle, Page, PdfReader, Unreadable};
use super::text::{Language, normalize};

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
    fn unread(source: &CitedSource) -> Self {
        Self {
            source: source.clone(),
            verdict: SourceVerdict::Unreachable,
            reason: Some(Reason::Unreachable),
            final_url: None,
            title: None,
            http_status: None,
            detail: None,
            evidence: Vec::new(),
        }
    }

    /// The verdict, before it is known if another source answered.
    pub fn verdict(&self) -> SourceVerdict {
        self.verdict
    }

    /// The source.
    pub fn source(&self) -> &CitedSource {
        &self.source
    }

    /// Removes the passages, if there is no room for them.
    pub fn remove_passages(&mut self) {
        self.evidence.iter_mut().for_each(|(_, evidence)| evidence.passage = None);
    }
}

/// A page whose facts were found once, for any number of checks.
pub struct PreparedPage(PageFacts);

impl PreparedPage {
    /// Finds the facts of a page. Takes processor time, and waits for nothing.
    pub fn new(page: &Page) -> Self {
        Self(PageFacts::new(page))
    }
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
        fetched: &Result<FetchedPage, FetchError>,
        pdf: Option<&PdfReader>,
    ) -> SourceStep {
        let mut step = SourceStep::unread(source);
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

    /// Compares a source that needs no request with the claims that cite it.
    pub(crate) fn judge_local(&self, source: &CitedSource, found: LocalSource) -> SourceStep {
        let mut step = SourceStep::unread(source);
        let (verdict, reason, detail) = match found {
            LocalSource::Kept { page, final_url, status } => {
                (step.verdict, step.reason) = (SourceVerdict::Ok, None);
                (step.final_url, step.http_status) = (final_url, status);
                step.title = page.title.clone();
                self.compare(&mut step, &page);
                return step;
            }
            LocalSource::Unchanged { title, blocks } => {
                let page = Page::from_blocks(title, blocks);
                if !page.blocks.is_empty() {
                    (step.verdict, step.reason) = (SourceVerdict::Ok, None);
                    step.title = page.title.clone();
                    self.compare(&mut step, &page);
                    return step;
                }
                let detail = "the file has no text that can be read now".to_owned();
                (SourceVerdict::Unreadable, Reason::Unreadable, detail)
            }
            LocalSource::Changed(detail) => (SourceVerdict::Changed, Reason::Changed, detail),
            LocalSource::Refused(detail) => (SourceVerdict::Refused, Reason::Refused, detail),
        };
        SourceStep { verdict, reason: Some(reason), detail: Some(detail), ..step }
    }

    /// Compares a page that was read before with the claims that cite it. Takes processor time, and waits for nothing.
    pub fn judge_page(&self, source: &CitedSource, page: &PreparedPage) -> SourceStep {
        let mut step = SourceStep::unread(source);
        (step.verdict, step.reason) = (SourceVerdict::Ok, None);
        self.compare_with(&mut step, || &page.0);
        step
    }

    fn compare(&self, step: &mut SourceStep, page: &Page) {
        let mut facts = None;
        self.compare_with(step, || facts.insert(PageFacts::new(page)));
    }

    fn compare_with<'a>(&self, step: &mut SourceStep, facts: impl FnOnce() -> &'a PageFacts) {
        let number = step.source.number;
        let citing = self
            .report
            .claims
            .iter()
            .enumerate()
            .filter(|(_, claim)| claim.citations.contains(&number));
        let citing: Vec<_> = citing.map(|(at, _)| at).collect();
        if !citing.is_empty() {
            let facts = facts();
            step.evidence =
                citing.into_iter().map(|at| (at, facts.compare(&self.claims[at]))).collect();
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
        let lacks = |found: &Evidence| strong.iter().filter(|fact| !found.found[**fact]).count();
        let other = evidence.iter().find(|(_, found)| {
            found.other_value.is_some() && (missing.len() == 1 || lacks(found) == missing.len())
        });
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
        } else if matched > 0
            && (matched * 2 >= strong.len() || evidence.iter().any(|(_, found)| found.is_about))
        {
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
mod tests;
