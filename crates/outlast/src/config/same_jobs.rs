//! The options by which a command in another environment finds the same jobs. They name the store by the configuration file or
//! the data directory, never by its address, which may hold a password.

use std::path::PathBuf;

use super::StoreUrl;
use super::layers::{Layers, ValueSource};
use super::settings;

/// The name of the database in the data directory.
const DATABASE: &str = "outlast.db";

impl Layers {
    /// Returns the options; `None` if a variable or a flag names the store or the owner in a way that no option repeats.
    pub(super) fn same_jobs(&self, store: &StoreUrl) -> Option<Vec<String>> {
        let is_given = |source: &ValueSource| {
            matches!(source, ValueSource::Flag(_) | ValueSource::Variable(_))
        };
        let owner = self.find(settings::SERVER_OWNER);
        if is_given(&owner.source) && owner.text != settings::SERVER_OWNER.default {
            return None;
        }
        let url = self.find(settings::STORE_URL);
        let data_dir = match (store, &url.source) {
            (StoreUrl::Memory, _) => return None,
            (StoreUrl::Sqlite(path), ValueSource::File(_)) if path.is_relative() => return None,
            (_, ValueSource::File(_)) => None,
            (_, ValueSource::Default) => {
                let dir = self.find(settings::STORE_DATA_DIR);
                is_given(&dir.source).then(|| PathBuf::from(dir.text))
            }
            (StoreUrl::Sqlite(path), ValueSource::Flag(_) | ValueSource::Variable(_)) => {
                let is_in_file = self.set(settings::STORE_URL).any(|it| !is_given(&it.source));
                let is_usual = path.file_name().is_some_and(|name| name == DATABASE);
                let dir = path.parent().filter(|_| is_usual && !is_in_file)?;
                Some(dir.to_owned())
            }
            (StoreUrl::Postgres(_), ValueSource::Flag(_) | ValueSource::Variable(_)) => {
                return None;
            }
        };
        let named = [("--config", self.config_file()), ("--data-dir", data_dir.as_deref())];
        let mut options = Vec::new();
        for (flag, path) in named {
            if let Some(path) = path {
                let path = std::path::absolute(path).ok()?.into_os_string().into_string().ok()?;
                options.extend([flag.to_owned(), path]);
            }
        }
        Some(options)
    }
}

#[cfg(test)]
mod tests {
    use outlast_store::ConnectionDefaults;

    use super::*;

    fn same_jobs(environment: &[(&str, &str)], file: Option<&str>) -> Option<Vec<String>> {
        let layers = Layers::of(environment, file).unwrap();
        let url = layers.find(settings::STORE_URL).text;
        let url = if url.is_empty() { "sqlite:/default/outlast.db" } else { &url };
        layers.same_jobs(&StoreUrl::parse(url, &ConnectionDefaults::default()).unwrap())
    }

    /// L1: the store is named by a file or a folder, never by an address.
    #[test]
    fn l1_the_store_is_never_named_by_an_address() {
        let postgres = ("OUTLAST_STORE", "postgres://ann:hunter2@db/jobs");
        let in_file = "[store]\nurl = \"postgres://ann:hunter2@db/jobs\"\n";
        let none = || Some(Vec::new());
        let dir = |dir: &str| Some(vec!["--data-dir".to_owned(), dir.to_owned()]);
        for (environment, file, expected) in [
            (&[][..], None, none()),
            (&[("OUTLAST_DATA_DIR", "/data")], None, dir("/data")),
            (&[("OUTLAST_STORE", "sqlite:/jobs/outlast.db")], None, dir("/jobs")),
            (&[("OUTLAST_STORE", "sqlite:/jobs/mine.db")], None, None),
            (&[("OUTLAST_STORE", "sqlite:/jobs/outlast.db")], Some(in_file), None),
            (&[("OUTLAST_STORE", "memory:")], None, None),
            (&[postgres], None, None),
            (&[], Some(in_file), none()),
            (&[("OUTLAST_DATA_DIR", "/data")], Some(in_file), none()),
            (&[("OUTLAST_OWNER", "ann")], None, None),
            (&[("OUTLAST_OWNER", "local")], None, none()),
            (&[], Some("[server]\nowner = \"ann\"\n"), none()),
        ] {
            assert_eq!(same_jobs(environment, file), expected, "{environment:?} {file:?}");
        }
    }
}
