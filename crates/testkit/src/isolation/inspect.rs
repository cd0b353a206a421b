//! Searches the answers of an owner for data of other owners.

use std::path::Path;

use super::client::Answer;
use super::ledger::Ledger;
use super::owners::{MIRRORED, NAMES, token};
use super::request::Request;

/// Texts that no owner may read.
pub(super) struct Secrets {
    /// The folder of the servers' data; only the owner whose conversations are files may see it.
    folder: String,
}

impl Secrets {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_string_lossy().into_owned() }
    }

    /// Returns a description of the leak, if there is one.
    pub(super) fn leak(
        &self,
        ledger: &Ledger,
        owner: usize,
        request: &Request,
        heard: &Answer,
    ) -> Option<String> {
        let said = format!("{}\n{}", heard.head, heard.body);
        if let Some(name) = foreign_words(owner, &said) {
            return Some(format!("it has words of {name}"));
        }
        if (0..NAMES.len()).any(|owner| said.contains(&token(owner))) {
            return Some("it has a token".to_owned());
        }
        if owner != MIRRORED && said.contains(&self.folder) {
            return Some("it names the folder of the servers".to_owned());
        }
        for id in ids(&said).filter(|id| !request.says(id)) {
            if let Some(other) = ledger.record(owner, id) {
                return Some(format!("it has the id {id}, which belongs to {other}"));
            }
        }
        None
    }
}

/// Returns the other owner whose words are in a text that this owner reads, if there is one.
pub(super) fn foreign_words(owner: usize, said: &str) -> Option<&'static str> {
    let said = said.to_ascii_lowercase();
    let mut others = NAMES.iter().enumerate().filter(|(other, _)| *other != owner);
    others.find(|(_, name)| said.contains(**name)).map(|(_, name)| *name)
}

/// Returns everything in a text that looks like an id of a job, a conversation, a session or a run.
pub(super) fn ids(said: &str) -> impl Iterator<Item = &str> {
    let words = said.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')));
    words.filter(|word| is_id(word.strip_prefix("resp_").unwrap_or(word)))
}

fn is_id(word: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match word.len() {
        32 => is_hex(word),
        36 => word.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && word.split('-').all(is_hex),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_any_context() {
        let job = "0123456789abcdef0123456789abcdef";
        let uuid = "01234567-89ab-cdef-0123-456789abcdef";
        let said = format!("`{job}`: \"{uuid}\" /logs/{job}/x resp_{uuid} {job}0 not-an-id");
        let found: Vec<&str> = ids(&said).collect();
        assert_eq!(found, [job, uuid, job, &format!("resp_{uuid}")]);
    }

    #[test]
    fn words_of_others_are_found_in_any_case() {
        assert_eq!(foreign_words(0, "Zqann asks"), None);
        assert_eq!(foreign_words(0, "about Zqbob17x"), Some("zqbob"));
    }
}
