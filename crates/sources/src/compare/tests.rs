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

const MEADOW: &str = "# Meadow\n\n\
    The meadow uses SHA-256 and follows RFC 4711, which obsoletes RFC 815. It has two gates.\n\n\
    Before 1.4.0, `graze` could not eat more than 512 megabytes. The walls are made of about 10,000 lines of code.\n\n\
    In 1911 the owner planted it on June 15, not May 15. All of Wessex is on UTC+5 since then.\n\n\
    Can `mow` and `rake` work together? The gardener was chosen by Ann Poe.\n\n\
    The tall fence can be painted with the usual red paint. The price of that is around 10 % on average.\n";

/// J2
#[test]
fn a_number_is_a_part_of_its_acronym() {
    let cases = [
        ("The meadow uses SHA-256.", "all"),
        ("The meadow uses SHA256.", "SHA256"),
        ("The meadow uses SHA-512.", "differs: SHA-256"),
        ("All of Wessex is on UTC+5.", "all"),
        ("All of Wessex is on UTC+6.", "differs: UTC+5"),
    ];
    for (claim, expected) in cases {
        assert_eq!(compare(MEADOW, claim), expected, "{claim}");
    }
    let page = "# Hay\n\nThe barn signs all of its hay with SHA256 today.";
    assert_eq!(compare(page, "The barn signs its hay with SHA-256."), "all");
}

/// J2
#[test]
fn the_opposite_of_a_sentence_does_not_support_it() {
    let cases = [
        ("`graze` could not eat more than 512 MB before 1.4.0.", "all"),
        ("`graze` can not eat more than 512 MB since 1.4.0.", "all, lowered"),
        ("RFC 4711 replaces RFC 815.", "all"),
        ("RFC 815 replaces RFC 4711.", "all, lowered"),
        ("The owner planted it on 15 June 1911.", "all"),
        ("The owner planted it on 15 May 1911.", "all, lowered"),
        ("`mow` and `rake` work together.", "all, lowered"),
    ];
    for (claim, expected) in cases {
        assert_eq!(compare(MEADOW, claim), expected, "{claim}");
    }
    let ropes = "# Ropes\n\nA rope without knots by Ida Lund uses hemp from Riga.";
    assert_eq!(compare(ropes, "The rope without knots by Ida Lund uses hemp from Riga."), "all");
    let claim = "The rope without knots by Ida Lund does not use hemp from Riga.";
    assert_eq!(compare(ropes, claim), "all, lowered");
}

/// J2
#[test]
fn another_value_may_be_in_the_sentence_after_the_subject() {
    let cases = [
        ("Painting the tall fence costs around 25 % on average.", "differs: around 10 %"),
        ("The gardener was chosen by Eva Falk.", "differs: Ann Poe"),
        ("The walls are made of about 30,000 lines of code.", "differs: about 10,000"),
    ];
    for (claim, expected) in cases {
        assert_eq!(compare(MEADOW, claim), expected, "{claim}");
    }
}

/// J2
#[test]
fn a_passage_that_only_mentions_a_name_does_not_support_what_is_stated_of_it() {
    let page = "# Tools\n\nThe profiles are `quick` and `slow`.\n\nSharpening is done in `slow` only, with a wet stone.";
    let claim = "Rust removal is enabled in the `quick` profile and forbidden in `slow`.";
    assert_eq!(compare(page, claim), "all, lowered");
    assert_eq!(compare(page, "Sharpening with a wet stone is done in `slow`."), "all");
}

/// J2
#[test]
fn the_value_of_an_identifier_counts_even_if_it_is_small() {
    let page =
        "# Oven\n\nThe setting heat-level = 3 is the default of `bake` and of all its friends.";
    assert_eq!(compare(page, "`bake` has a `heat-level` of 3 by default."), "all");
    assert_eq!(compare(page, "`bake` has a `heat-level` of 2 by default."), "2");
}

/// J2
#[test]
fn only_the_nearest_heading_gives_a_version() {
    let page =
        "# News in 9.0.0\n\n- Larger lids\n\n## News in 8.0.4\n\n- A leak in `pour` was fixed\n";
    assert_eq!(compare(page, "A leak in `pour` was fixed in 8.0.4."), "all");
    assert_eq!(compare(page, "A leak in `pour` was fixed in 9.0.0."), "differs: 8.0.4");
}

/// J2
#[test]
fn the_head_of_a_markdown_table_names_its_columns() {
    let page = "# Ponds\n\n| size | Karp time | Pike time |\n|---|---:|---:|\n| small | 4.25 ms | 8.75 ms |\n";
    assert_eq!(compare(page, "In the small pond, Karp takes 4.25 ms and Pike 8.75 ms."), "all");
    let claim = "In the small pond, Pike takes 4.25 ms and Karp 8.75 ms.";
    assert_eq!(compare(page, claim), "all, lowered");
}

/// J7: all rows of a table are below the same headings, which are read and searched once.
#[test]
fn headings_are_searched_once_for_all_rows_of_a_table() {
    let rows: String = (0..2_000).map(|n| format!("<tr><td>pond {n}<td>{n} m")).collect();
    let page = format!("<h1>Ponds</h1><table><tr><th>Name<th>Length{rows}</table>");
    let fetched = crate::fetch::FetchedPage {
        url: url::Url::parse("https://example.org/").unwrap(),
        status: 200,
        content_type: "text/html".to_owned(),
        is_challenge: false,
        body: page.into_bytes(),
        truncated: false,
    };
    let facts = PageFacts::new(&Page::read(&fetched, None).unwrap());
    assert_eq!(facts.units.len(), 2_000);
    let text = "The pond of Ada Lind has `depth_max` of 5,000 m.";
    let claim = ClaimFacts::new(text, Some(Language::English), &Vocabulary::default());
    facts.compare(&claim);
    assert!(work::counted() <= 1 + claim.facts.len(), "{}", work::counted());
}
