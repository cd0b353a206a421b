//! What a client has said that a fresh server must be told again: the greeting, the log level, subscriptions.

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::frame::Greeting;
use crate::message::Message;

/// The client's side of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    /// The first message.
    pub(crate) greeting: Option<Greeting>,
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
        if self.greeting.is_none() {
            self.greeting = greeting(message);
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
    pub(crate) fn mark(&self) -> String {
        hex(&Sha256::digest(format!("{}\0{}", self.method, self.params)))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The greeting that a first message is, unless it is an answer.
pub(crate) fn greeting(message: &Message<'_>) -> Option<Greeting> {
    let params = message.params.map(|params| params.get().to_owned()).unwrap_or_default();
    Some(Greeting { method: message.method.as_deref()?.to_owned(), params })
}
