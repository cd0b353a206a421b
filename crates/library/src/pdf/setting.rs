//! How a file is set: what most of it looks like, where its lines end, and what runs along on every page.

use std::collections::{HashMap, HashSet};

use super::super::clean;
use super::lines::Line;

/// What most of a file is set in.
pub(super) struct Body {
    pub(super) size: f64,
    /// From line to line, of the size.
    pub(super) leading: f64,
    pub(super) is_bold: bool,
}

/// Looks at all lines.
pub(super) fn body(lines: &[Line]) -> Body {
    let mut sizes: HashMap<i64, usize> = HashMap::new();
    let (mut bold, mut all) = (0, 0);
    for line in lines {
        *sizes.entry(halves(line.size)).or_default() += line.text.len();
        all += line.text.len();
        bold += if line.is_bold { line.text.len() } else { 0 };
    }
    let mut steps: HashMap<i64, usize> = HashMap::new();
    for pair in lines.windows(2) {
        let [above, below] = pair else { continue };
        let step = (above.y - below.y) / below.size;
        if above.page == below.page
            && halves(above.size) == halves(below.size)
            && (0.8..3.0).contains(&step)
        {
            *steps.entry((step * 20.0).round() as i64).or_default() += below.text.len();
        }
    }
    let most =
        |counts: HashMap<i64, usize>| counts.into_iter().max_by_key(|(key, count)| (*count, -*key));
    Body {
        size: most(sizes).map_or(10.0, |(size, _)| size as f64 / 2.0),
        leading: most(steps).map_or(1.2, |(step, _)| step as f64 / 20.0),
        is_bold: bold * 4 > all,
    }
}

/// Where lines end that begin at about the same place of a page.
pub(super) struct Edges {
    width: f64,
    ends: HashMap<(u32, i64), f64>,
}

impl Edges {
    /// The end that a line could have had.
    pub(super) fn of(&self, line: &Line) -> f64 {
        let at = (line.x / self.width).round() as i64;
        let ends = [at - 1, at, at + 1].map(|at| self.ends.get(&(line.page, at)).copied());
        ends.into_iter().flatten().fold(line.end, f64::max)
    }
}

pub(super) fn right_edges(lines: &[Line], body: &Body) -> Edges {
    let mut edges = Edges { width: body.size * 1.5, ends: HashMap::new() };
    for line in lines.iter().filter(|line| !line.is_row) {
        let at = (line.page, (line.x / edges.width).round() as i64);
        let end = edges.ends.entry(at).or_insert(line.end);
        *end = end.max(line.end);
    }
    edges
}

/// Sizes are told apart by half a point.
pub(super) fn halves(size: f64) -> i64 {
    (size * 2.0).round() as i64
}

/// Takes out what stands at the top or the bottom of page after page: titles that run along, and page numbers.
pub(super) fn drop_running(lines: &mut Vec<Line>, pages: usize) {
    let mut edges: HashMap<u32, (f64, f64)> = HashMap::new();
    for line in lines.iter() {
        let (top, bottom) = edges.entry(line.page).or_insert((line.y, line.y));
        (*top, *bottom) = (top.max(line.y), bottom.min(line.y));
    }
    let key = |line: &Line| {
        let (top, bottom) = edges.get(&line.page).copied()?;
        let is_edge = top - line.y < line.size * 1.5 || line.y - bottom < line.size * 1.5;
        let text: String =
            line.text.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
        is_edge.then(|| (clean::squeeze(&text), (line.y / 4.0).round() as i64))
    };
    let mut counts: HashMap<_, HashSet<u32>> = HashMap::new();
    for line in lines.iter() {
        if let Some(key) = key(line) {
            counts.entry(key).or_default().insert(line.page);
        }
    }
    lines.retain(|line| {
        let Some(key) = key(line) else { return true };
        let times = counts.get(&key).map_or(0, HashSet::len);
        let is_number = key.0.contains('#') && !key.0.chars().any(char::is_alphabetic);
        let is_repeated = times >= 3 && times * 3 >= pages;
        !(is_repeated || (is_number && times >= 2 && times * 2 >= pages))
    });
}
