//! The list of models, which includes the deep-research agents.

use serde::Deserialize;

use crate::vendor::lenient::{Items, Known, object};

#[derive(Debug, Default, Deserialize)]
struct Models {
    models: Items<Model>,
}

#[derive(Debug, Default, Deserialize)]
struct Model {
    name: Known<String>,
}

/// The names of the deep-research agents in a list of models.
pub(in crate::gemini) fn listed_agents(body: &[u8]) -> Vec<String> {
    let models: Models = object(body).unwrap_or_default();
    let names = models.models.0.into_iter().flatten().filter_map(|model| model.name.0);
    let names = names.map(|name| name.rsplit('/').next().unwrap_or_default().to_owned());
    names.filter(|name| name.starts_with("deep-research")).collect()
}
