use super::*;

const FILL: &str =
    "Words that fill the page and state nothing of interest to anybody who reads it. ";

fn page(body: &str) -> Result<FetchedPage, FetchError> {
    let body = format!(
        "<html lang=en><title>Lake Vostok</title><main><h1>Lake Vostok</h1>{body}<p>{}</p></main>",
        FILL.repeat(20)
    );
    Ok(FetchedPage {
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
        ("They wrote that \"the water has been cut off for millions of years\".", Supported, ""),
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
    let with = |change: &dyn Fn(&mut FetchedPage)| {
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
    assert_eq!(with(&|page| page.truncated = true), (S::Ok, C::Unchecked, Some(Reason::Truncated)));
    assert_eq!(with(&|page| page.status = 403), (S::Blocked, C::Unchecked, Some(Reason::Blocked)));
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
    let root = |page: &mut FetchedPage| page.url = Url::parse("https://a.example/").unwrap();
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
