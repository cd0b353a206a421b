//! One clause of a scenario as text: a name and `key=value` pairs. What they mean is decided elsewhere.

use std::collections::BTreeMap;
use std::str::FromStr;

/// One clause, its keys taken out as they are understood.
pub(crate) struct Keys<'a> {
    pub(crate) name: &'a str,
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Keys<'a> {
    pub(crate) fn read(clause: &'a str) -> Result<Self, String> {
        let mut parts = clause.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let mut values = BTreeMap::new();
        for part in parts.filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, "true"));
            if values.insert(key.trim(), value.trim()).is_some() {
                return Err(format!("simulator: `{key}` stands twice in `{clause}`"));
            }
        }
        Ok(Self { name, values })
    }

    pub(crate) fn value<T: FromStr>(&mut self, key: &str) -> Result<Option<T>, String> {
        let Some(text) = self.values.remove(key) else { return Ok(None) };
        let Ok(value) = text.parse() else { return Err(self.bad(key, text)) };
        Ok(Some(value))
    }

    pub(crate) fn at_most(&mut self, key: &str, most: usize) -> Result<Option<usize>, String> {
        match self.value(key)? {
            Some(value) if value > most => {
                Err(format!("simulator: `{key}` is at most {most}, not {value}"))
            }
            value => Ok(value),
        }
    }

    pub(crate) fn choice<T, const N: usize>(
        &mut self,
        key: &str,
        choices: [(&str, T); N],
    ) -> Result<Option<T>, String> {
        let Some(text) = self.values.remove(key) else { return Ok(None) };
        let chosen = choices.into_iter().find(|(name, _)| *name == text);
        chosen.map(|(_, value)| Some(value)).ok_or_else(|| self.bad(key, text))
    }

    pub(crate) fn times(&mut self) -> Result<Times, String> {
        Ok(self.value("times")?.map_or(Times::Always, Times::First))
    }

    pub(crate) fn all_used(self) -> Result<(), String> {
        match self.values.keys().next() {
            None => Ok(()),
            Some(key) => Err(format!("simulator: scenario `{}` has no key `{key}`", self.name)),
        }
    }

    fn bad(&self, key: &str, text: &str) -> String {
        format!("simulator: `{key}={text}` of scenario `{}` is not understood", self.name)
    }
}

/// How often something happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Times {
    Always,
    First(u64),
}

impl Times {
    /// Whether the `nth` occurrence, counted from 0, is among them.
    pub(crate) fn covers(self, nth: u64) -> bool {
        match self {
            Times::Always => true,
            Times::First(times) => nth < times,
        }
    }
}
