//! What a client has said that a fresh server must be told again: the greeting, the log level, subscriptions.

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::canonical;
use crate::frame::Greeting;
use crate::message::{Message, MetaParams};

/// The client's side of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    /// Who the client is, by its first message, and by `initialize` where that came later.
    greetings: Vec<Greeting>,
    pub(crate) initialize: Option<Vec<u8>>,
    initialized: Option<Vec<u8>>,
    level: Option<Vec<u8>>,
    subscriptions: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug, Default, Deserialize)]
struct Subscription {
    #[serde(default)]
    uri: String,
}

impl Session {
    /// Remembers a line of the client, if it is one of those.
    pub(crate) fn observe(&mut self, line: &[u8], message: &Message<'_>) {
        let Some(method) = message.method.as_deref() else { return };
        if (self.greetings.is_empty() || method == "initialize" && self.greetings.len() == 1)
            && let Some(greeting) = greeting(message).filter(|greeting| !self.has(greeting))
        {
            self.greetings.push(greeting);
        }
        let keep = || Some(line.to_vec());
        match method {
            "initialize" => self.initialize = keep(),
            "notifications/initialized" => self.initialized = keep(),
            "logging/setLevel" => self.level = keep(),
            "resources/subscribe" => {
                let uri = message.params::<Subscription>().uri;
                self.subscriptions.insert(uri, line.to_vec());
            }
            "resources/unsubscribe" => {
                self.subscriptions.remove(&message.params::<Subscription>().uri);
            }
            _ => {}
        }
    }

    /// Whether a client that greets so is this one.
    pub(crate) fn has(&self, greeting: &Greeting) -> bool {
        self.greetings.contains(greeting)
    }

    /// A short name for the client.
    pub(crate) fn mark(&self) -> Option<String> {
        self.greetings.last().map(Greeting::mark)
    }

    /// Whether that name is of this client.
    pub(crate) fn has_mark(&self, mark: &str) -> bool {
        self.greetings.iter().any(|greeting| greeting.mark() == mark)
    }

    /// The lines that follow the greeting.
    pub(crate) fn after_greeting(&self) -> Vec<Vec<u8>> {
        let rest = self.level.iter().chain(self.subscriptions.values());
        self.initialized.iter().chain(rest).cloned().collect()
    }

    /// All of it, in order.
    pub(crate) fn replay(&self) -> Vec<String> {
        let lines = self.initialize.iter().cloned().chain(self.after_greeting());
        lines.filter_map(|line| String::from_utf8(line).ok()).collect()
    }
}

impl Greeting {
    /// A short name for it.
    fn mark(&self) -> String {
        hex(&Sha256::digest(format!("{}\0{}", self.method, self.params)))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Who a client is by its first message, unless that is an answer. A client of the stateless era greets with whatever it
/// wants first, so only what it says of itself counts.
pub(crate) fn greeting(message: &Message<'_>) -> Option<Greeting> {
    let method = message.method.as_deref()?;
    if method == "initialize" {
        let params = message.params.map(|params| params.get().to_owned()).unwrap_or_default();
        return Some(Greeting { method: method.to_owned(), params });
    }
    let client = message.params::<MetaParams<'_>>().meta().client.map_or("", |client| client.get());
    let digest = canonical::digest(client).map(|digest| hex(&digest));
    Some(Greeting { method: String::new(), params: digest.unwrap_or_else(|| client.to_owned()) })
}
