//! Judges claims about pages for `scripts/citation-questions`: reads a JSON object in each line of standard input
//! (`type`, `page`, `claims`), and writes an array of checked claims for each.

use std::io::{BufRead as _, Write as _};

use outlast_sources::{Check, CitedSource, FetchedPage, Report};
use serde_json::Value;
use url::Url;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let task: Value = serde_json::from_str(&line?)?;
        let text = |key: &str| task[key].as_str().unwrap_or_default().to_owned();
        let claims = task["claims"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let paragraphs: Vec<_> = claims.map(|claim| format!("{claim} [1]\n\n")).collect();
        let url = "https://page.example/page".to_owned();
        let source = CitedSource { number: 1, url: url.clone() };
        let mut check =
            Check::new(Report::with_sources(&paragraphs.concat(), vec![source.clone()]));
        let fetched = FetchedPage {
            url: Url::parse(&url)?,
            status: 200,
            content_type: text("type"),
            is_challenge: false,
            body: text("page").into_bytes(),
            truncated: false,
        };
        check.record(check.judge(&source, &Ok(fetched), None));
        let claims = serde_json::to_string(&check.finish(String::new()).claims)?;
        writeln!(out, "{claims}")?;
    }
    Ok(())
}
