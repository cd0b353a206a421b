//! The list of models, in which the deep-research agents stand too.

use serde::Deserialize;

use crate::vendor::lenient::{Known, known_items, object};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Models {
    #[serde(deserialize_with = "known_items")]
    models: Option<Vec<Model>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Model {
    name: Known<String>,
}

/// The names of the deep-research agents in a list of models.
pub(in crate::gemini) fn listed_agents(body: &[u8]) -> Vec<String> {
    let models: Models = object(body).unwrap_or_default();
    let names = models.models.into_iter().flatten().filter_map(|model| model.name.0);
    let names = names.map(|name| name.rsplit('/').next().unwrap_or_default().to_owned());
    names.filter(|name| name.starts_with("deep-research")).collect()
}
