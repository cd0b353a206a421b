//! Every setting once: the table of docs/configuration.md is read here, so that what is documented is what counts.

use std::sync::LazyLock;

const PAGE: &str = include_str!("../../../../docs/configuration.md");

/// One thing that can be configured.
pub(super) struct Setting {
    /// `section.key` in outlast.toml.
    pub(super) key: &'static str,
    /// Environment variables, the first that is set wins.
    pub(super) variables: Vec<&'static str>,
    /// Used when nothing is set; empty means there is none.
    pub(super) default: &'static str,
    /// One line for people.
    pub(super) help: &'static str,
}

/// All of them, in the order of the documentation.
pub(super) static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let table = PAGE.split("<!-- settings -->").nth(1).unwrap_or_default();
    let table = table.split("<!-- end of settings -->").next().unwrap_or_default();
    table.lines().filter_map(setting).collect()
});

/// A row such as `` | `key` | `VARIABLE`, `OTHER` | `default` | help | ``; a `-` stands for none.
fn setting(row: &'static str) -> Option<Setting> {
    let row = row.strip_prefix("| `")?.strip_suffix(" |")?;
    let [key, variables, default, help] = row.split(" | ").collect::<Vec<_>>().try_into().ok()?;
    let key = key.trim_end_matches('`');
    let quoted = |cell: &'static str| cell.split('`').skip(1).step_by(2);
    let default = quoted(default).next().unwrap_or_default();
    Some(Setting { key, variables: quoted(variables).collect(), default, help })
}
