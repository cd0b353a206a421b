//! The rules of the comparison, each with a page that needs it.

use super::*;

/// Returns what a page has of a claim: "all", "all, lowered", "differs: VALUE" or the missing facts.
fn compare(page: &str, claim: &str) -> String {
    let mut vocabulary = Vocabulary::default();
    vocabulary.add(claim);
    let claim = ClaimFacts::new(claim, Some(Language::English), &vocabulary);
    let evidence = PageFacts::new(&Page::from_text(page)).compare(&claim);
    if let Some(value) = evidence.other_value {
        return format!("differs: {value}");
    }
    let facts = claim.facts.iter().zip(&evidence.found).zip(&evidence.subject);
    let missing: Vec<_> = facts
        .filter(|((fact, found), subject)| !**found && !**subject && !fact.weak)
        .map(|((fact, _), _)| fact.text.as_str())
        .collect();
    match (missing.is_empty(), evidence.is_lowered) {
        (true, false) => "all".to_owned(),
        (true, true) => "all, lowered".to_owned(),
        (false, _) => missing.join(", "),
    }
}

const CHANGES: &str = "# Changes of Kettle\n\n\
    ## 2.4.0 (June 3rd, 2021)\n\n- Reject lids in `fill_up` (#12)\n- Bump MSRV to 1.46\n\n\
    ## 2.3.1 (2020-11-08)\n\n- Fix a deadlock when calling `pour` with `Lid::from_cup`\n\n\
    ## 2.3.0 (2020-01-02)\n\n- The minimum supported Rust version is 1.39\n";

/// J2
#[test]
fn the_heading_of_a_change_has_its_version_and_its_date() {
    let cases = [
        ("Lids in `fill_up` are rejected since June 3, 2021.", "all"),
        ("Lids in `fill_up` are rejected since June 13, 2021.", "differs: June 3rd, 2021"),
        ("Lids in `fill_up` are rejected since version 2.3.1.", "differs: 2.4.0"),
        ("Lids in `fill_up` are rejected since version 2.4.", "all"),
        ("Lids in `fill_up` are rejected since version 2.4.1.", "differs: 2.4.0"),
        ("Cups in `melt_down` were painted on June 13, 2021.", "melt_down, June 13, 2021"),
    ];
    for (claim, expected) in cases {
        assert_eq!(compare(CHANGES, claim), expected, "{claim}");
    }
}

/// J2
#[test]
fn an_acronym_stands_for_the_words_that_the_page_writes_out() {
    let cases = [
        ("With 2.4.0 the minimum Rust version became 1.46.", "all"),
        ("With 2.4.0 the minimum Rust version became 1.57.", "differs: 1.46"),
        ("With 2.4.0 the minimum Swift version became 1.46.", "Swift"),
    ];
    for (claim, expected) in cases {
        assert_eq!(compare(CHANGES, claim), expected, "{claim}");
    }
}

/// J2
#[test]
fn a_preposition_distinguishes_two_values_of_one_label() {
    let roles = "# An evening\n\nThe opera was composed by Anna Berg and staged by Carl Dorn with help from Eva Falk.";
    let cases = [
        (CHANGES, "A deadlock with `Lid::from_cup` was fixed in November 2020.", "all"),
        (roles, "It was staged by Carl Dorn.", "all"),
        (roles, "It was composed by Carl Dorn.", "all, lowered"),
    ];
    for (page, claim, expected) in cases {
        assert_eq!(compare(page, claim), expected, "{claim}");
    }
}

/// J2
#[test]
fn a_sentence_about_another_subject_does_not_support_a_claim_about_the_page() {
    let page = "# Kyoto\n\nKyoto is a city with 1,463,723 inhabitants.\n\n\
        Sendai, with which it is often compared, has 1,096,704 inhabitants.";
    assert_eq!(compare(page, "Kyoto has 1,463,723 inhabitants."), "all");
    assert_eq!(compare(page, "Kyoto has 1,096,704 inhabitants."), "differs: 1,463,723");
}

/// J2
#[test]
fn a_sentence_with_a_colon_belongs_to_what_it_leads_to() {
    let page = "# Kettle\n\nFor `fishbowl`, write the settings:\n\n```\nkettle --emit bowl > kettle.bowl.toml\n```\n\n\
        Other shells need nothing.";
    let claim = "The settings for `fishbowl` are written with `kettle --emit bowl`.";
    assert_eq!(compare(page, claim), "all");
}
