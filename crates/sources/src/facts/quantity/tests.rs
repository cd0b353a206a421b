//! Numbers of sentences and pages.

use super::super::tokens;
use super::*;

fn read(text: &str) -> Quantity {
    let tokens = tokens(text);
    (0..tokens.len()).find_map(|at| quantity(text, &tokens, at, false)).unwrap().0
}

/// J2
#[test]
fn numbers_agree_at_the_precision_of_the_sentence() {
    use Agreement::*;
    let cases = [
        ("1,200 km", "1200 km", Some(Equal)),
        ("1.2 thousand", "1,200", Some(Equal)),
        ("1.2k stars", "1200 stars", Some(Equal)),
        ("1.2 million", "1,203,456", Some(Rounded)),
        ("1.3 million", "1,203,456", None),
        ("about 40 %", "39.8 %", Some(Rounded)),
        ("40 percent", "39.8%", Some(Rounded)),
        ("39.5 %", "39.8 %", None),
        ("12 %", "12 percentage points", None),
        ("12 km", "12 miles", None),
        ("1.5 km", "1500 m", Some(Equal)),
        ("40 people", "more than 40 people", Some(BoundDiffers)),
        ("more than 40 people", "more than 40 people", Some(Equal)),
        ("more than 40 people", "43 people", Some(Rounded)),
        ("more than 40 people", "38 people", None),
        ("about 1,200", "1,234", Some(Rounded)),
        ("1,200", "1,234", None),
        ("83,000,000", "83,240,525", Some(Rounded)),
        ("$5 million", "$5m", Some(Equal)),
        ("$5 million", "€5 million", None),
        ("-5 °C", "5 °C", None),
        ("two million", "2,000,000", Some(Equal)),
        ("10-20 %", "10 %", Some(Equal)),
        ("256 bits", "32 bytes", Some(Equal)),
        ("3.7 MB", "3700 kbytes", Some(Equal)),
        ("232 ms", "0.232 s", Some(Equal)),
        ("beyond 512 MB", "more than 512 megabytes", Some(Equal)),
        ("up to 25 lids", "22", None),
        ("twenty lines", "10 lines", None),
    ];
    for (sentence, page, expected) in cases {
        assert_eq!(read(sentence).agrees(&read(page)), expected, "{sentence} / {page}");
    }
    assert_eq!(read("30,000 lines").agrees_in_unit_of(&read("30,000 bytes")), None);
    assert_eq!(read("5").agrees_in_unit_of(&read("7 ms")), None);
    let (sentence, cell) = (read("357,022 km2"), read("357,022"));
    assert_eq!(sentence.agrees(&cell.in_unit_of(&sentence)), Some(Equal));
}

/// J2
#[test]
fn separators_are_read_in_both_customs() {
    for (text, comma, value) in [
        ("1.234.567", false, 1_234_567.0),
        ("1,234,567.5", false, 1_234_567.5),
        ("1.234.567,5", false, 1_234_567.5),
        ("1'234", false, 1_234.0),
        ("1,5", false, 1.5),
        ("1.234", false, 1.234),
        ("1.234", true, 1_234.0),
        ("1,234", true, 1.234),
    ] {
        assert_eq!(parse(text, comma).map(|found| found.0), Some(value), "{text}");
    }
    assert!((read("1 234 567 people").value - 1_234_567.0).abs() < 1e-9);
}
