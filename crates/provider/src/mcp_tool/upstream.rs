//! One upstream server: connected to when it is first needed, and again, after a while, when it has left.

use std::sync::Arc;
use std::time::Duration;

use outlast_client::{CallOptions, Client, ClientError, ConnectOptions, Endpoint, ProgramToStart};
use outlast_core::ProviderError;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::provider_error::provider_error;
use crate::command::{Group, Guard};

/// The wait before the next try to reach a server; doubles.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The longest time a server may take to answer a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// The location of a server.
#[derive(Clone, Debug)]
pub enum ServerPlace {
    /// A program to start, connected by its pipes.
    Program(ProgramToStart),
    /// An address.
    Endpoint(Endpoint),
}

/// A server whose tools are workflows. One connection serves all calls.
pub struct Upstream {
    name: String,
    server: ServerPlace,
    guard: Arc<Guard>,
    state: Mutex<UpstreamState>,
}

#[derive(Default)]
struct UpstreamState {
    connected: Option<Arc<UpstreamConnection>>,
    failures: u32,
    not_before: Option<Instant>,
}

/// A connection. The guard watches a program that was started until the client has stopped it.
pub(super) struct UpstreamConnection {
    pub(super) client: Client,
    _watched: Option<GuardedServer>,
}

struct GuardedServer {
    group: Group,
    guard: Arc<Guard>,
}

impl Drop for GuardedServer {
    fn drop(&mut self) {
        self.guard.release(&self.group);
    }
}

impl Upstream {
    /// Connects to nothing yet. The guard ends a started program when this process cannot.
    pub fn new(name: String, server: ServerPlace, guard: Arc<Guard>) -> Self {
        Self { name, server, guard, state: Mutex::default() }
    }

    /// Its name in the configuration.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Connects for this alone, returns the server's tools as it describes them, and leaves again.
    pub async fn list_tools(&self) -> Result<Vec<Value>, ClientError> {
        let connected = self.open_connection().await?;
        let tools = connected.client.list_tools(CallOptions::default()).await;
        connected.client.close().await;
        tools
    }

    /// Returns a connection that answers, or a new one.
    pub(super) async fn connect(&self) -> Result<Arc<UpstreamConnection>, ProviderError> {
        // Held during the handshake, so that many jobs at once start one server.
        let mut state = self.state.lock().await;
        if let Some(connected) = &state.connected {
            if answers_ping(&connected.client).await {
                return Ok(Arc::clone(connected));
            }
            tracing::warn!(upstream = self.name, "lost the upstream server; connecting again");
            state.connected = None;
        }
        if let Some(moment) = state.not_before {
            tokio::time::sleep_until(moment).await;
        }
        match self.open_connection().await {
            Ok(connected) => {
                let connected = Arc::new(connected);
                *state =
                    UpstreamState { connected: Some(Arc::clone(&connected)), ..Default::default() };
                Ok(connected)
            }
            Err(error) => {
                tracing::warn!(upstream = self.name, %error, "failed to reach the upstream server");
                let wait = FIRST_WAIT.saturating_mul(1 << state.failures.min(10)).min(MAX_WAIT);
                state.failures += 1;
                state.not_before = Some(Instant::now() + wait);
                Err(provider_error(&error))
            }
        }
    }

    /// Drops a connection that broke, so that the next call makes a new one.
    pub(super) async fn drop_connection(&self, connected: &Arc<UpstreamConnection>) {
        let mut state = self.state.lock().await;
        if state.connected.as_ref().is_some_and(|current| Arc::ptr_eq(current, connected)) {
            state.connected = None;
        }
    }

    async fn open_connection(&self) -> Result<UpstreamConnection, ClientError> {
        let options = ConnectOptions::default();
        let client = match &self.server {
            ServerPlace::Program(program) => {
                self.guard.ready().map_err(report_unguarded)?;
                Client::spawn(program.clone(), options).await?
            }
            ServerPlace::Endpoint(endpoint) => Client::http(endpoint.clone(), options).await?,
        };
        let watched = match client.pid() {
            Some(pid) => {
                let group = Group::find_group(pid).map_err(report_unguarded)?;
                self.guard.watch(group).map_err(report_unguarded)?;
                Some(GuardedServer { group, guard: Arc::clone(&self.guard) })
            }
            None => None,
        };
        tracing::info!(
            upstream = self.name,
            protocol = client.protocol(),
            "connected to the upstream server"
        );
        Ok(UpstreamConnection { client, _watched: watched })
    }
}

/// Returns true if the server answers at all, even if it does not know the method.
async fn answers_ping(client: &Client) -> bool {
    let patience = CallOptions::default().timeout(PING_TIMEOUT);
    let answer = client.request("ping", Value::Null, patience).await;
    matches!(answer, Ok(_) | Err(ClientError::Refused { .. }))
}

fn report_unguarded(source: std::io::Error) -> ClientError {
    ClientError::Start { program: "the guard over upstream servers".to_owned(), source }
}
