//! `[wrap]`: the settings of hand-offs, and the identity that a host process and its fronts share.

use outlast_wrap::{OnCancel, ToolPolicy, WrapSettings};

use super::definitions::FilePlace;
use super::error::ConfigResult;
use super::layers::{Layers, environment};
use super::settings;
use crate::duration;

/// Variables that differ between two starts of the same client.
const PASSING: [&str; 4] = ["_", "SHLVL", "PWD", "OLDPWD"];

impl Layers {
    /// Reads `[wrap]`. Every mistake in its tools names its line.
    pub(super) fn wrap(&self) -> ConfigResult<WrapSettings> {
        let after = self.parsed(settings::WRAP_AFTER, "a duration such as 45s or 4m", |text| {
            duration::limit(text).ok()
        })?;
        let on_cancel =
            self.parsed(settings::WRAP_ON_CANCEL, "auto, keep, forward", |text| match text {
                "auto" => Some(OnCancel::Auto),
                "keep" => Some(OnCancel::Keep),
                "forward" => Some(OnCancel::Forward),
                _ => None,
            })?;
        let mut settings = WrapSettings { after, on_cancel, ..WrapSettings::default() };
        settings.max_result = self.bytes(settings::WRAP_MAX_RESULT)?;
        let Some(file) = &self.file else { return Ok(settings) };
        let at = FilePlace { path: &file.path, text: &file.text };
        let tools = file.definitions.wrap.iter().flat_map(|wrap| &wrap.tools);
        for (name, policy) in tools {
            let parsed = match policy.get_ref().text().as_str() {
                "never" => Some(ToolPolicy::Never),
                "at once" => Some(ToolPolicy::AtOnce),
                text => duration::limit(text).ok().map(ToolPolicy::After),
            };
            let why = "must be \"never\", \"at once\" or a duration such as \"2m\"";
            let parsed = parsed.ok_or_else(|| at.wrong(&policy.span(), name, why))?;
            settings.tools.insert(name.clone(), parsed);
        }
        Ok(settings)
    }
}

/// Returns the part of the environment that is the same at every start of a client, in order.
pub(crate) fn wrap_environment() -> Vec<(String, String)> {
    let kept = environment().into_iter().filter(|(name, _)| !PASSING.contains(&name.as_str()));
    let mut kept: Vec<_> = kept.collect();
    kept.sort();
    kept
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn wrap(file: &str) -> Result<WrapSettings, String> {
        let layers = Layers::of(&[], Some(file)).map_err(|error| error.to_string())?;
        layers.wrap().map_err(|error| error.to_string())
    }

    #[test]
    fn h9_each_tool_may_have_its_own_policy() {
        let settings = wrap("[wrap]\nafter = \"4m\"\non_cancel = \"keep\"\nmax_result = \"1MiB\"\n[wrap.tools]\na = \"never\"\nb-c = \"2m\"\n\"d e\" = \"at once\"\n").unwrap();
        assert_eq!(
            (settings.after, settings.on_cancel),
            (Duration::from_secs(240), OnCancel::Keep)
        );
        assert_eq!(settings.max_result, 1 << 20);
        let policies: Vec<_> = settings.tools.into_iter().collect();
        let two_minutes = ToolPolicy::After(Duration::from_secs(120));
        let expected =
            [("a", ToolPolicy::Never), ("b-c", two_minutes), ("d e", ToolPolicy::AtOnce)];
        assert_eq!(policies, expected.map(|(name, policy)| (name.to_owned(), policy)));
        let default = wrap("").unwrap();
        assert_eq!(default, WrapSettings::default());
    }

    #[test]
    fn h9_a_wrong_policy_names_its_line() {
        for (file, expected) in [
            ("[wrap.tools]\na = \"soon\"\n", "at once"),
            ("[wrap]\nafter = \"soon\"\n", "wrap.after"),
            ("[wrap]\non_cancel = \"maybe\"\n", "wrap.on_cancel"),
            ("[wrap]\nafterwards = \"1s\"\n", "afterwards"),
        ] {
            let error = wrap(file).unwrap_err();
            assert!(error.contains(expected), "{file}: {error}");
        }
    }
}
