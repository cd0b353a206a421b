//! Call an MCP tool that may take an hour.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use outlast_client::{CallOptions, Client, ClientError, ConnectOptions, ProgramToStart};
//! # async fn run() -> Result<(), ClientError> {
//! let server = ProgramToStart::new("outlast").arg("serve");
//! let client = Client::spawn(server, ConnectOptions::default()).await?;
//! let options = CallOptions::default()
//!     .timeout(Duration::from_secs(60))           // give up after a minute without a sign of life
//!     .reset_timeout_on_progress()                // progress is a sign of life
//!     .max_total_timeout(Duration::from_secs(3 * 3600))
//!     .on_progress(|progress| eprintln!("{progress}"));
//! let question = serde_json::json!({ "query": "Heat pumps in cold climates?" });
//! let answer = client.call_tool("perplexity_deep_research", question, options).await?;
//! eprintln!("{}", answer.text);
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! The limits are explained in `docs/timeouts.md` and compared with other clients in `docs/project/sdk-timeouts.md`.
//! Only this crate and the server use rmcp.

#![warn(missing_docs)]

mod client;
mod options;
mod answer;
mod error;

mod patience;
mod progress;
mod call;
mod task;

mod wire_tap;
mod pending;
mod stream;
mod child;
mod endpoint;
mod http;

pub use answer::ToolAnswer;
pub use child::{ChildEnd, ProgramToStart, StderrMode};
pub use client::Client;
pub use endpoint::Endpoint;
pub use error::{ClientError, GivenUpTask, TaskFate, TimedOut};
pub use options::{CallOptions, ConnectOptions, Era};
pub use outlast_http::{ProxyOptions, ProxyScope};
pub use patience::{Limit, RequestLimits};
pub use pending::DroppedMessages;
pub use progress::Progress;
pub use task::{StartedCall, TaskCall};
