//! Exit code, standard output and standard error as files, with the parts masked that change from run to run.
//! `UPDATE_SNAPSHOTS=1` writes the files again.

use std::path::PathBuf;

use crate::support::{Ran, World};

/// The texts to replace, with their replacements.
pub(super) struct Mask {
    pairs: Vec<(String, String)>,
}

impl Mask {
    pub(super) fn new(world: &World) -> Self {
        let data = world.data_dir();
        let folder = data.parent().unwrap().to_str().unwrap().to_owned();
        let simulator = world.simulator.url().to_owned();
        Self { pairs: vec![(folder, "<dir>".to_owned()), (simulator, "<provider>".to_owned())] }
    }

    /// Masks an id, and its prefixes as people see them.
    pub(super) fn id(mut self, id: &str, name: &str) -> Self {
        self.pairs.push((id.to_owned(), format!("<{name}>")));
        for length in [12, 8] {
            self.pairs.push((id[..length].to_owned(), format!("<{name}:{length}>")));
        }
        self
    }

    /// Masks any text.
    pub(super) fn word(mut self, text: &str, name: &str) -> Self {
        self.pairs.push((text.to_owned(), name.to_owned()));
        self
    }

    pub(super) fn masked(&self, text: &str) -> String {
        let named =
            self.pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
        named.lines().map(|line| line_masked(line) + "\n").collect()
    }

    /// Compares the output of a command with the file of this name.
    pub(super) fn check(&self, name: &str, arguments: &[&str], ran: &Ran) {
        let shown = format!(
            "$ outlast {}\nexit code: {}\n----- stdout\n{}----- stderr\n{}",
            self.masked(&arguments.join(" ")).trim_end(),
            ran.code.unwrap(),
            self.masked(&ran.stdout),
            self.masked(&ran.stderr)
        );
        compare(name, &shown);
    }
}

/// Returns true if the files are to be written again.
#[expect(
    clippy::disallowed_methods,
    reason = "the developer who runs the tests decides, not the configuration"
)]
pub(super) fn is_renewing() -> bool {
    std::env::var_os("UPDATE_SNAPSHOTS").is_some()
}

/// Compares a text with the file of this name.
pub(super) fn compare(name: &str, shown: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/cli/snapshots")
        .join(format!("{name}.txt"));
    if is_renewing() {
        std::fs::write(&path, shown).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "\n{}: UPDATE_SNAPSHOTS=1 renews it\n", path.display());
}

/// Masks times, durations, ids that the test did not choose, and the provider's own ids; then runs of spaces, which
/// depend on them.
fn line_masked(line: &str) -> String {
    let mut masked: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let core = word.trim_matches(['(', ')', ',', '"', '+', '.', ':']);
        let is_unit = matches!(core, "ms" | "s" | "min" | "h" | "d");
        let number = masked.last().filter(|_| is_unit).and_then(|last| number_in(last));
        if let (Some(number), Some(last)) = (number, masked.last_mut()) {
            *last = last.replacen(&number, &word.replacen(core, "<took>", 1), 1);
        } else if core.len() == 24 && core.ends_with('Z') && core.contains('T') {
            masked.push(word.replace(core, "<time>"));
        } else if core.starts_with("resp_") {
            masked.push(word.replace(core, "<run>"));
        } else if core.len() == 32 && core.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            masked.push(word.replace(core, "<id>"));
        } else {
            masked.push(word.to_owned());
        }
    }
    let mut text = masked.join(" ");
    while text.contains("   ") {
        text = text.replace("   ", "  ");
    }
    // "2 min 5 s" is one duration.
    text.replace("<took> <took>", "<took>")
}

fn number_in(word: &str) -> Option<String> {
    let core = word.trim_matches(['(', '+']);
    let is_number =
        core.starts_with(|first: char| first.is_ascii_digit()) && core.parse::<f64>().is_ok();
    is_number.then(|| core.to_owned())
}
