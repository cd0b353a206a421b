//! The client's lines that a restarted server must receive again: the greeting, the log level, subscriptions.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::canonical;
use crate::frame::GreetingFrame;
use crate::message::{Message, MetaParams, client_name};

/// The client's side of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientSession {
    /// The client's greetings: its first message, and `initialize` if that came later.
    greetings: Vec<GreetingFrame>,
    pub(crate) initialize: Option<Vec<u8>>,
    initialized: Option<Vec<u8>>,
    level: Option<Vec<u8>>,
    subscriptions: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug, Default, Deserialize)]
struct InitializeParams<'a> {
    #[serde(borrow, default, rename = "clientInfo")]
    client: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Subscription {
    #[serde(default)]
    uri: String,
}

impl ClientSession {
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

    /// Returns the name that the client gave itself in `initialize`.
    pub(crate) fn client_name(&self) -> Option<String> {
        let message = Message::read(self.initialize.as_deref()?)?;
        client_name(message.params::<InitializeParams<'_>>().client)
    }

    /// Returns true if a client with this greeting is this client.
    pub(crate) fn has(&self, greeting: &GreetingFrame) -> bool {
        self.greetings.contains(greeting)
    }

    /// Returns a short name for the client.
    pub(crate) fn mark(&self) -> Option<String> {
        self.greetings.last().map(GreetingFrame::mark)
    }

    /// Returns true if this is a short name of this client.
    pub(crate) fn has_mark(&self, mark: &str) -> bool {
        self.greetings.iter().any(|greeting| greeting.mark() == mark)
    }

    /// Returns the lines that follow the greeting.
    pub(crate) fn after_greeting(&self) -> Vec<Vec<u8>> {
        let rest = self.level.iter().chain(self.subscriptions.values());
        self.initialized.iter().chain(rest).cloned().collect()
    }

    /// Returns all lines, in order.
    pub(crate) fn replay(&self) -> Vec<String> {
        let lines = self.initialize.iter().cloned().chain(self.after_greeting());
        lines.filter_map(|line| String::from_utf8(line).ok()).collect()
    }
}

impl GreetingFrame {
    /// Returns a short name for the greeting.
    fn mark(&self) -> String {
        hex(&Sha256::digest(format!("{}\0{}", self.method, self.params)))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the identity of a client from its first message, unless that is an answer. A client of the stateless era may
/// send any request first, so only its description of itself counts.
pub(crate) fn greeting(message: &Message<'_>) -> Option<GreetingFrame> {
    let method = message.method.as_deref()?;
    if method == "initialize" {
        let params = message.params.map(|params| params.get().to_owned()).unwrap_or_default();
        return Some(GreetingFrame { method: method.to_owned(), params });
    }
    let client = message.params::<MetaParams<'_>>().meta().client.map_or("", |client| client.get());
    let digest = canonical::digest(client).map(|digest| hex(&digest));
    Some(GreetingFrame {
        method: String::new(),
        params: digest.unwrap_or_else(|| client.to_owned()),
    })
}
