//! The folders in which other programs of this user keep their configuration.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::layers::environment;

/// The user's folders as other programs find them.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The home directory.
    pub(crate) home: PathBuf,
    /// The folder of desktop programs' settings.
    pub(crate) application_support: PathBuf,
    /// The folder of programs that follow XDG on every system.
    pub(crate) xdg_config: PathBuf,
    /// Codex's own folder.
    pub(crate) codex: PathBuf,
}

impl Places {
    /// Reads the environment; `None` without a home directory.
    pub(crate) fn read() -> Option<Self> {
        Self::of(&environment())
    }

    fn of(environment: &HashMap<String, String>) -> Option<Self> {
        let absolute =
            |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME")?;
        let xdg_config = absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let application_support = if cfg!(target_os = "macos") {
            home.join("Library").join("Application Support")
        } else {
            xdg_config.clone()
        };
        let codex = absolute("CODEX_HOME").unwrap_or_else(|| home.join(".codex"));
        Some(Self { home, application_support, xdg_config, codex })
    }

    /// Returns a path as people write it.
    pub(crate) fn short(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_environment_and_need_a_home() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Places::of(&pairs.collect())
        };
        assert!(
            of(&[]).is_none() && of(&[("HOME", "")]).is_none() && of(&[("HOME", "x")]).is_none()
        );
        let places = of(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "rel")]).unwrap();
        assert_eq!(places.xdg_config, Path::new("/h/.config"));
        assert_eq!(places.codex, Path::new("/h/.codex"));
        let places =
            of(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x"), ("CODEX_HOME", "/c")]).unwrap();
        assert_eq!(places.xdg_config, Path::new("/x"));
        assert_eq!(places.codex, Path::new("/c"));
        assert_eq!(places.short(Path::new("/h/.cursor/mcp.json")), "~/.cursor/mcp.json");
    }
}
