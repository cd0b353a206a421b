//! The free objects of the Managed Agents API: agents, environments and sessions.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::errors::Refusal;
use crate::scenario::Scenario;
use crate::wall_clock;

/// All objects that are not runs.
#[derive(Default)]
pub(crate) struct Objects {
    /// Agents and environments.
    pub(crate) definitions: Vec<Value>,
    pub(crate) sessions: Vec<Session>,
    /// The number of attempts to create a session, by title.
    creates: HashMap<String, u64>,
    /// Never reset: an id must not be reused for another object.
    made: u64,
}

/// A session, apart from its run.
pub(crate) struct Session {
    pub(crate) id: String,
    /// The request that created it.
    pub(crate) request: Value,
    pub(crate) created_at: u64,
    pub(crate) archived_at: Option<u64>,
    /// The scenario in its title; only the clauses about its creation apply.
    pub(crate) scenario: Scenario,
}

impl Objects {
    /// Returns an unused id.
    pub(crate) fn new_id(&mut self, prefix: &str) -> String {
        self.made += 1;
        format!("{prefix}_{:024x}", self.made)
    }

    /// Counts an attempt to create a session with this title, and returns the number of earlier ones.
    pub(crate) fn count_create(&mut self, title: &str) -> u64 {
        let tries = self.creates.entry(title.to_owned()).or_default();
        *tries += 1;
        *tries - 1
    }

    /// Removes everything.
    pub(crate) fn reset(&mut self) {
        *self = Self { made: self.made, ..Self::default() };
    }

    pub(crate) fn session(&self, id: &str) -> Result<&Session, Refusal> {
        self.sessions.iter().find(|session| session.id == id).ok_or_else(Refusal::not_found)
    }

    /// Returns the agents or environments that were not archived.
    pub(crate) fn live(&self, kind: &str) -> impl Iterator<Item = &Value> {
        let definitions = self.definitions.iter();
        definitions.filter(move |object| object["type"] == kind && object["archived_at"].is_null())
    }
}

/// Renders a new agent or environment.
pub(crate) fn made(id: String, request: &Value, kind: &str) -> Value {
    let now = wall_clock::rfc3339(wall_clock::unix_seconds());
    let given = |name: &str, default: Value| match &request[name] {
        Value::Null => default,
        value => value.clone(),
    };
    let mut object = json!({
        "id": id, "type": kind, "name": request["name"], "created_at": now, "updated_at": now,
        "archived_at": null, "description": request["description"],
        "metadata": given("metadata", json!({})),
    });
    if kind == "agent" {
        object["model"] = json!({
            "id": request["model"], "effort": {"type": "medium"}, "speed": "standard",
        });
        object["system"] = request["system"].clone();
        object["tools"] = given("tools", json!([]));
        for tool in object["tools"].as_array_mut().into_iter().flatten() {
            tool["default_config"]["permission_policy"] = json!({"type": "always_allow"});
            for config in tool["configs"].as_array_mut().into_iter().flatten() {
                config["type"] = config["name"].clone();
                if config["permission_policy"].is_null() {
                    config["permission_policy"] = json!({"type": "always_allow"});
                }
            }
        }
        object["mcp_servers"] = json!([]);
        object["skills"] = json!([]);
        object["version"] = 1.into();
        object["execution_identity"] = json!({"type": "service_account"});
    } else {
        let none = json!([]);
        object["config"] = json!({
            "type": "cloud", "networking": {"type": "unrestricted"},
            "packages": {"type": "packages", "apt": none, "cargo": none, "gem": none, "go": none, "npm": none, "pip": none},
        });
        object["scope"] = "organization".into();
    }
    object
}
