//! This program understands every command in README.md, docs/ and the help itself.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;

use super::Cli;

/// Returns the commands in a text of code blocks: the words after `outlast`, or after `cargo run ... --`.
fn commands(block: &str) -> Vec<Vec<String>> {
    let joined = block.replace("\\\n", " ");
    joined.lines().flat_map(|line| parts(line).into_iter().filter_map(arguments)).collect()
}

/// Returns the simple commands of a line, as words; parses quotes and comments as a shell does.
fn parts(line: &str) -> Vec<Vec<String>> {
    let mut parts = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in line.chars().chain([' ']) {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(character);
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '|' | '&' | ';' | '(' | ')' | '<' | '>') => {
                parts.last_mut().unwrap().extend(word.take());
                if character != ' ' {
                    parts.push(Vec::new());
                }
            }
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    parts
}

/// Returns the arguments of an outlast command; `None` for any other command, and for a mere mention of the program.
fn arguments(words: Vec<String>) -> Option<Vec<String>> {
    let is_prompt = |word: &String| word == "$" || (word.contains('=') && !word.starts_with('-'));
    let words: Vec<String> = words.into_iter().skip_while(is_prompt).collect();
    match words.first()?.as_str() {
        "outlast" => Some(words),
        "cargo" if words.get(1).is_some_and(|word| word == "run") => {
            let at = words.iter().position(|word| word == "--")?;
            Some([vec!["outlast".to_owned()], words[at + 1..].to_vec()].concat())
        }
        _ => None,
    }
}

/// Returns the text of a page's code blocks that contain commands, and the rest of the page.
fn split(page: &str) -> (String, String) {
    let (mut blocks, mut prose) = (String::new(), String::new());
    for (number, part) in page.split("```").enumerate() {
        let is_block = number % 2 == 1;
        let (language, text) = part.split_once('\n').unwrap_or(("", part));
        match is_block {
            true if ["", "console", "sh"].contains(&language) => blocks.push_str(text),
            true => {}
            false => prose.push_str(part),
        }
    }
    (blocks, prose)
}

fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let named = ["README.md", "CONTRIBUTING.md"].map(|name| root.join(name));
    let pages = docs.chain(named).filter(|path| path.extension().is_some_and(|end| end == "md"));
    pages.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_command_in_the_docs_is_understood() {
    let mut seen = 0;
    for (path, page) in pages() {
        for words in commands(&split(&page).0) {
            seen += 1;
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{}: {}\n{error}", path.display(), words.join(" "));
            }
        }
    }
    assert!(seen > 30, "only {seen} commands were found");
}

#[test]
fn every_example_in_the_help_is_understood() {
    let mut seen = 0;
    let mut all = vec![Cli::definition()];
    while let Some(command) = all.pop() {
        all.extend(command.get_subcommands().cloned());
        let examples = [command.get_after_help(), command.get_after_long_help()];
        for words in examples.into_iter().flatten().flat_map(|text| commands(&text.to_string())) {
            seen += 1;
            Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{words:?}\n{error}"));
        }
    }
    assert!(seen >= 10, "only {seen} examples were found");
}

#[test]
fn every_command_s_help_ends_with_an_example_of_itself() {
    let mut root = Cli::definition();
    root.build();
    let mut all = vec![(root, "outlast".to_owned())];
    let mut seen = 0;
    while let Some((command, name)) = all.pop() {
        let below = command.get_subcommands().filter(|below| !below.is_hide_set());
        let below: Vec<_> = below.filter(|below| below.get_name() != "help").cloned().collect();
        let is_leaf = below.is_empty();
        all.extend(below.into_iter().map(|below| {
            let name = format!("{name} {}", below.get_name());
            (below, name)
        }));
        if is_leaf {
            seen += 1;
            let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            let examples = commands(&help);
            let is_own = |words: &Vec<String>| words.join(" ").starts_with(&name);
            assert!(examples.iter().any(is_own), "{name}: {help}");
        }
    }
    assert!(seen > 20, "only {seen} commands were found");
}

/// In prose a command may be only its start; the commands and options that it names must exist.
#[test]
fn every_command_that_prose_names_is_there() {
    let mut seen = 0;
    for (path, page) in pages() {
        let prose = split(&page).1;
        let spans = prose.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " "));
        for span in spans.filter(|span| span.starts_with("outlast ")) {
            seen += 1;
            named(&span).unwrap_or_else(|word| panic!("{}: {span}: no {word}", path.display()));
        }
    }
    assert!(seen > 30, "only {seen} commands were found");
}

fn named(span: &str) -> Result<(), String> {
    let mut root = Cli::definition();
    root.build();
    let mut command = &root;
    for word in parts(span).into_iter().next().unwrap_or_default().iter().skip(1) {
        if word == "--" {
            break;
        }
        if let Some(option) = word.strip_prefix("--") {
            let mut options = command.get_arguments().filter_map(|option| option.get_long());
            if !options.any(|known| known == option) {
                return Err(word.clone());
            }
        } else if command.has_subcommands() && word != "..." {
            command = command.find_subcommand(word).ok_or_else(|| word.clone())?;
        }
    }
    Ok(())
}

#[test]
fn a_command_is_found_however_it_is_written() {
    let block = "$ K=v outlast jobs list # all\nx=$(outlast demo) && cargo run -q -- doctor > f\n\
                 outlast research \"a # b\" \\\n  --detach\ncargo build -- x\n";
    let found: Vec<String> = commands(block).iter().map(|words| words.join(" ")).collect();
    assert_eq!(found[0], "outlast jobs list");
    assert_eq!(found[1..], ["outlast demo", "outlast doctor", "outlast research a # b --detach"]);
    assert!(named("outlast jobs nap").is_err() && named("outlast demo --loud").is_err());
    assert!(named("outlast init ... --remove").is_ok() && named("outlast call -- x --y").is_ok());
}
