//! The recipient of notices about ended jobs, from `[notify]` of outlast.toml.

use std::collections::BTreeMap;

use super::Secret;
use super::definitions::FilePlace;
use super::error::ConfigResult;
use super::layers::Layers;
use super::redact::is_http;
use super::workflows::{ProgramDefinition, WorkflowReader};

/// The recipient of notices.
#[derive(Clone, Debug)]
pub(crate) enum Notify {
    /// A command, with the JSON on its standard input.
    Command(ProgramDefinition),
    /// An address, which may itself hold a secret; each POST to it is signed with `secret`.
    Url { url: Secret, secret: Secret },
}

impl Layers {
    /// Returns the recipient of notices, if there is one. Every mistake names its line.
    pub(super) fn notify(&self) -> ConfigResult<Option<Notify>> {
        let Some(file) = &self.file else { return Ok(None) };
        let Some(entry) = &file.definitions.notify else { return Ok(None) };
        let at = FilePlace { path: &file.path, text: &file.text };
        if let (None, Some(pass_env)) = (&entry.command, &entry.pass_env) {
            return Err(at.wrong(
                &pass_env.span(),
                "pass_env",
                "is for `command`, which is missing",
            ));
        }
        match (&entry.command, &entry.url, &entry.secret) {
            (None, None, None) => Ok(None),
            (Some(command), None, None) => {
                let reader = WorkflowReader { layers: self, at, upstreams: BTreeMap::new() };
                Ok(Some(Notify::Command(reader.program(command, &None, &None, &entry.pass_env)?)))
            }
            (None, Some(url), Some(secret)) if !secret.get_ref().trim().is_empty() => {
                if !is_http(url.get_ref()) {
                    let why = "must be an address that starts with https:// or http://";
                    return Err(at.wrong(&url.span(), "url", why));
                }
                let (url, secret) = (url.get_ref().clone(), secret.get_ref().clone());
                Ok(Some(Notify::Url { url: Secret(url), secret: Secret(secret) }))
            }
            (Some(_), Some(url), _) => {
                let why = "cannot be combined with `command`: one of them receives notices";
                Err(at.wrong(&url.span(), "url", why))
            }
            (None, Some(url), _) => {
                let why = "needs `secret` beside it: what is posted there is signed with that";
                Err(at.wrong(&url.span(), "url", why))
            }
            (_, None, Some(secret)) => {
                let why = "is for `url`, which is missing";
                Err(at.wrong(&secret.span(), "secret", why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notify(file: &str) -> Result<Option<Notify>, String> {
        let environment = [("PATH", "/bin"), ("HOME", "/home/ann"), ("MINE", "secret")];
        let layers = Layers::of(&environment, Some(file)).map_err(|error| error.to_string())?;
        layers.notify().map_err(|error| error.to_string())
    }

    /// G7: one of the two, the address with a secret, and neither is shown.
    #[test]
    fn g7_a_command_or_a_signed_address_receives_notices() {
        assert!(notify("[server]\nconcurrency = 2\n").unwrap().is_none());
        assert!(notify("[notify]\n").unwrap().is_none());
        let setting = notify("[notify]\ncommand = [\"tell\", \"a, b\"]\n").unwrap();
        let Some(Notify::Command(program)) = setting else { panic!("{setting:?}") };
        assert_eq!(program.argv, ["tell", "a, b"]);
        let names: Vec<&str> =
            program.environment.0.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["HOME", "PATH"], "what every child gets, and no more");
        let passing = "[notify]\ncommand = [\"tell\"]\npass_env = [\"MINE\", \"NOT_SET\"]\n";
        let Some(Notify::Command(program)) = notify(passing).unwrap() else { panic!() };
        let passed = program.environment.0.iter().find(|(name, _)| name == "MINE");
        assert_eq!(passed.map(|(_, value)| value.as_str()), Some("secret"));
        assert_eq!(program.environment.0.len(), 3, "{:?}", program.environment);
        let setting =
            notify("[notify]\nurl = \"https://hooks.example/t0ken\"\nsecret = \"hunter2\"\n")
                .unwrap();
        assert!(matches!(setting, Some(Notify::Url { .. })), "{setting:?}");
        let shown = format!("{setting:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("t0ken"), "{shown}");
    }

    #[test]
    fn a_mistake_names_its_line_and_repeats_no_secret() {
        let url = "url = \"https://hooks.example/t0ken\"\n";
        let cases = [
            (format!("[notify]\n{url}"), "needs `secret`"),
            (format!("[notify]\n{url}secret = \" \"\n"), "needs `secret`"),
            (
                format!("[notify]\n{url}secret = \"hunter2\"\ncommand = [\"x\"]\n"),
                "combined with `command`",
            ),
            ("[notify]\nsecret = \"hunter2\"\n".to_owned(), "is for `url`"),
            ("[notify]\npass_env = [\"X\"]\n".to_owned(), "is for `command`"),
            ("[notify]\nurl = \"hooks.example\"\nsecret = \"hunter2\"\n".to_owned(), "https://"),
            ("[notify]\ncommand = \"notify-send\"\n".to_owned(), "expected"),
            ("[notify]\ncommand = []\n".to_owned(), "must be a list"),
            ("[notify]\ncommando = [\"x\"]\n".to_owned(), "commando"),
        ];
        for (file, expected) in cases {
            let error = notify(&file).unwrap_err();
            assert!(error.contains(expected), "{file}: {error}");
            assert!(!error.contains("hunter2") && !error.contains("t0ken"), "{error}");
        }
    }
}
