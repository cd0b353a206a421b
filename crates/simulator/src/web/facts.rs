//! The text of a page: sentences with numbers, dates and names.

use fastrand::Rng;

use super::corpus::{Block, Subject};
use crate::topic::capitalised;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const HEADINGS: [&str; 6] =
    ["Background", "Recent development", "Costs", "Performance", "People and places", "Outlook"];

/// Writes the blocks of a page. The second kind has a table of figures.
pub(super) fn blocks(subject: &Subject, kind: usize, rng: &mut Rng) -> Vec<Block> {
    let mut blocks = vec![Block::Text(paragraph(subject, rng))];
    for heading in HEADINGS {
        if rng.bool() && heading != HEADINGS[0] {
            continue;
        }
        blocks.push(Block::Heading(heading.to_owned()));
        blocks.push(Block::Text(paragraph(subject, rng)));
        blocks.push(Block::Text(paragraph(subject, rng)));
    }
    if kind == 1 {
        blocks.push(Block::Heading(format!("{} by year", capitalised(subject.name))));
        blocks.push(table(subject, rng));
    }
    // One long page per subject exceeds the window of a small model.
    if kind == 2 {
        blocks.extend((0..120).map(|_| Block::Text(paragraph(subject, rng))));
    }
    blocks
}

fn paragraph(subject: &Subject, rng: &mut Rng) -> String {
    let count = rng.usize(3..6);
    (0..count).map(|_| sentence(subject, rng)).collect::<Vec<_>>().join(" ")
}

fn sentence(subject: &Subject, rng: &mut Rng) -> String {
    let Subject { name, place, agency, person, unit, .. } = *subject;
    let year = rng.u32(1998..2025);
    let date = format!("{} {} {}", rng.u32(1..29), MONTHS[rng.usize(..12)], rng.u32(2005..2026));
    let count = thousands(rng.u32(1_050..980_000));
    let (first, second) = (rng.u32(120..900), rng.u32(120..900));
    let share = format!("{}.{}", rng.u32(11..89), rng.u32(1..10));
    let sentence = match rng.usize(..14) {
        0 => format!("In {year}, {count} {name} were counted in {place}, according to {agency}."),
        1 => format!(
            "The average cost of {name} in {place} changed from {first} euros in {year} to {second} euros in {}.",
            year + 4
        ),
        2 => format!("{person} presented the results on {name} in {place} on {date}."),
        3 => {
            format!("{agency} reported that {share} percent of {name} met the standard in {year}.")
        }
        4 => format!(
            "A study of {count} {name} found a mean value of {first}.{} {unit}.",
            rng.u32(1..10)
        ),
        5 => format!("{agency} published its first rules for {name} on {date}."),
        6 => format!(
            "Between {year} and {}, the number of {name} in {place} reached {count}.",
            year + 3
        ),
        7 => format!("{person}, who advises {agency}, estimates the error at {share} percent."),
        8 => format!(
            "The largest site for {name}, near {place}, was rated at {first} {unit} in {year}."
        ),
        9 => format!("Tests in {place} lasted {} months and ended on {date}.", rng.u32(3..48)),
        10 => format!("About {share} percent of the budget for {name} came from {agency}."),
        11 => format!(
            "Version {}.{}.{} of the test protocol has been in force since {date}.",
            rng.u32(1..6),
            rng.u32(..10),
            rng.u32(..10)
        ),
        12 => format!("\"We had to count the {name} of {place} twice,\" said {person} in {year}."),
        _ => format!("No measurement of {name} exceeded {second} {unit} before {year}."),
    };
    capitalised(&sentence)
}

fn table(subject: &Subject, rng: &mut Rng) -> Block {
    let mut rows = vec![["Year", "Number", subject.unit, "Share in %"].map(str::to_owned).to_vec()];
    for year in 2014..2025 {
        let share = format!("{}.{}", rng.u32(11..89), rng.u32(1..10));
        rows.push(vec![
            year.to_string(),
            thousands(rng.u32(1_050..980_000)),
            rng.u32(120..900).to_string(),
            share,
        ]);
    }
    Block::Table(rows)
}

fn thousands(number: u32) -> String {
    format!("{},{:03}", number / 1_000, number % 1_000)
}
