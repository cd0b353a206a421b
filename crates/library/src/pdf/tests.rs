//! No file does harm: what is damaged ends, and what multiplies is paid for before it is kept.

use std::cell::Cell;

use super::font::Font;
use super::*;

const FILES: [&[u8]; 4] = [
    include_bytes!("../../tests/it/pdfs/boiler.pdf"),
    include_bytes!("../../tests/it/pdfs/coffee.pdf"),
    include_bytes!("../../tests/it/pdfs/leave.pdf"),
    include_bytes!("../../tests/it/pdfs/pump.pdf"),
];

fn go_on() -> bool {
    true
}

#[test]
fn work_that_nobody_wants_ends_in_the_middle_of_a_file() {
    let asked = Cell::new(0);
    let go_on = || {
        asked.set(asked.get() + 1);
        asked.get() < 3
    };
    let mut long = FILES[3].to_vec();
    long.extend(b"9 0 obj (filler) endobj\n".repeat(20_000));
    assert_eq!(parse(&long, &go_on).err(), Some(Trouble::Stopped));
    assert_eq!(asked.get(), 3);
}

/// Whatever is done to a file: an end, no panic, and never more text than the file had.
#[test]
fn no_damage_does_harm() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut read = 0;
    for number in 0..240 {
        let file = FILES[[3, 3, 0, 3, 1, 3, 2, 3][number % 8]];
        let mut bytes = file.to_vec();
        match number % 5 {
            0 => bytes.truncate(random.usize(..bytes.len())),
            1 => {
                for _ in 0..random.usize(1..40) {
                    let at = random.usize(..bytes.len());
                    bytes[at] = random.u8(..);
                }
            }
            2 => {
                let from = random.usize(..bytes.len());
                let to = (from + random.usize(1..400)).min(bytes.len());
                bytes.drain(from..to);
            }
            3 => {
                for byte in bytes.iter_mut().filter(|byte| byte.is_ascii_digit()) {
                    if random.u8(..20) == 0 {
                        *byte = random.u8(b'0'..=b'9');
                    }
                }
            }
            _ => {
                let from = random.usize(..bytes.len());
                let part = bytes[from..(from + 500).min(bytes.len())].to_vec();
                let at = random.usize(..bytes.len());
                bytes.splice(at..at, part.repeat(3));
            }
        }
        if let Ok(document) = parse(&bytes, &go_on) {
            read += 1;
            let text: usize = document.passages.iter().map(|passage| passage.text.len()).sum();
            assert!(text < 20_000, "{number}: {text}");
        }
    }
    assert!((60..240).contains(&read), "{read}");
}

/// A file of objects, numbered from 1: a page with these resources and this content, and what else there is from 5 on.
fn page(resources: &str, content: &str, more: &[&str]) -> Vec<u8> {
    let length = content.len();
    let mut objects = vec![
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]>>".to_owned(),
        format!("<</Type/Page/Contents 4 0 R/Resources<<{resources}>>>>"),
        format!("<</Length {length}>>stream\n{content}\nendstream"),
    ];
    objects.extend(more.iter().map(|object| (*object).to_owned()));
    let numbered =
        (1..).zip(objects).map(|(number, object)| format!("{number} 0 obj {object} endobj\n"));
    let file: String = numbered.collect();
    (file + "trailer<</Root 1 0 R>>").into_bytes()
}

fn trouble(bytes: &[u8], sum: u64) -> Option<Trouble> {
    read(bytes, &Budget::of(sum, &go_on)).err()
}

/// Without the price, each of these costs less than half of its sum, and far more time or memory than it pays for.
#[test]
fn what_is_searched_or_copied_many_times_is_paid_for_each_time() {
    let many = |start: &str, each: &str, times: usize, end: &str| {
        format!("{start}{}{end}", each.repeat(times))
    };
    let entries = many("", "/Other 1", 2_000, "");
    let font = "<</Subtype/Type1/BaseFont/Courier>>";
    let long = many(
        "<</Subtype/Type3/Widths[0]/FirstChar 65/Encoding<</Differences[65/uni",
        "0041",
        16,
        "]>>>>",
    );
    let names = many("/Font<</F<</Subtype/Type1/Encoding<</Differences[", "/bbb", 2_000, "]>>>>>>");
    let said = many("/Properties<</P<</ActualText(", "a", 100_000, ")>>>>");
    let wide = many("<</Subtype/Type0/DescendantFonts[<</W[", "0 6 0 R ", 1_000, "]>>]>>");
    let widths = many("[", "/", 1_000, "]");
    let tf = |times| "/F 9 Tf ".repeat(times);
    let cases = [
        (
            "signs",
            page("/Font<</F 5 0 R>>", &many("/F 9 Tf(", "A", 10_000, ")Tj"), &[&long]),
            500_000,
        ),
        ("texts", page(&said, &"/S/P BDC EMC ".repeat(40), &[]), 4_000_000),
        ("fonts", page(&format!("/Font<<{entries}/F 5 0 R>>"), &tf(2_000), &[font]), 1_000_000),
        ("kinds", page(&format!("{entries}/Font<</F 5 0 R>>"), &tf(2_000), &[font]), 1_000_000),
        ("forms", page(&format!("/XObject<<{entries}>>"), &"/X Do ".repeat(2_000), &[]), 1_000_000),
        (
            "marks",
            page(&format!("/Properties<<{entries}>>"), &"/S/X BDC ".repeat(2_000), &[]),
            1_000_000,
        ),
        (
            "property",
            page(&format!("/Properties<</X<<{entries}>>>>"), &"/S/X BDC ".repeat(2_000), &[]),
            1_000_000,
        ),
        ("font", page(&format!("/Font<</F<<{entries}>>>>"), &tf(200), &[]), 4_000_000),
        ("names", page(&names, &tf(200), &[]), 8_000_000),
        ("widths", page("/Font<</F 5 0 R>>", &tf(1), &[&wide, &widths]), 4_000_000),
        ("comments", "1 0 obj<<>>%".repeat(2_000).into_bytes(), 1_000_000),
    ];
    for (name, bytes, sum) in cases {
        assert_eq!(trouble(&bytes, sum), Some(Trouble::TooMuch), "{name}");
    }
}

#[test]
fn a_file_whose_streams_nobody_ends_costs_no_more_than_its_length() {
    let open = "1 0 obj<<>>stream\n".repeat(2_000);
    assert_eq!(trouble(open.as_bytes(), 3 * open.len() as u64), Some(Trouble::Damaged));
}

#[test]
fn operands_that_are_too_many_together_are_not_kept() {
    let shown = |times: usize| {
        let array = format!("[{}]", "{".repeat(times));
        let content = format!("/F 9 Tf {array}{array}(word)\"");
        let file = page("/Font<</F 5 0 R>>", &content, &["<</Subtype/Type1/BaseFont/Courier>>"]);
        parse(&file, &go_on).map(|document| document.passages.len())
    };
    assert_eq!((shown(10), shown(60_000)), (Ok(1), Err(Trouble::NoText)));
}

#[test]
fn a_font_has_no_more_widths_than_there_are_codes() {
    let font = "<</Subtype/Type0/DescendantFonts[<</W[65534[1 2 3 4 5]70000 80000 1]>>]>>";
    let file = page("", "", &[font]);
    let budget = Budget::new(&go_on);
    let file = File::open(&file, &budget).ok().unwrap();
    let font = file.numbered(5).unwrap();
    assert_eq!(Font::read(&file, font.dict().unwrap()).unwrap().weight(), 256 + 2);
}
