//! A local server that implements the APIs of research providers, with faults on request.
//!
//! It replaces the provider in tests, in the demo and in benchmarks. It listens only on 127.0.0.1, needs no
//! network, counts every run it creates as money spent, and writes the same report for the same question and
//! seed.
//!
//! It implements the Agent API (`/v1/agent`, `/v1/responses`, `/v1/models`), the Search API (`/search`) and, on
//! request, Sonar (`/v1/async/sonar`, `/chat/completions`), which otherwise is retired and answers 403. A Sonar
//! job honours its idempotency key: the same key and request return the same job, the same key with another
//! request is a 409. Under `/openai/v1` it implements the Responses API of OpenAI: the same runs, which cite by
//! annotations and report no cost.
//!
//! It also implements Gemini's Interactions API (`/v1beta/interactions`, `/v1beta/models`, also below
//! `/gemini`), as far as deep-research agents use it. Its streams end after ten minutes.
//!
//! For Anthropic it implements Managed Agents (`/v1/agents`, `/v1/environments`, `/v1/sessions`).
//!
//! For researchers it has a scripted model (`/llm/SWITCHES/v1`, see `model/dialect.rs`), a SearXNG
//! (`/searxng/SWITCHES`, see `web/searxng.rs`) and a small web on other loopback addresses, which that search
//! finds.
//!
//! # Scenarios
//!
//! A scenario is chosen when a run is submitted or a search is made, and does not change. The last
//! `[[sim:...]]` marker in the question decides, otherwise the queue set by `POST /__sim/script`; without
//! either there are no faults.
//!
//! A scenario is one or more clauses separated by `|`; a clause is a name and its keys, separated by `;`:
//!
//! ```text
//! How do heat pumps age? [[sim:http;status=503;times=2|ok;words=50;delay_ms=0]]
//! ```
//!
//! Clauses add up. An unknown name, key or value is answered with 400, so that a misspelt fault cannot pass as
//! success.
//!
#![doc = include_str!("scenarios.md")]
//!
//! # Control plane
//!
//! Under `/__sim`, without a key: `GET stats`, `GET requests`, `POST release`, `POST reset`,
//! `GET calls`, `GET prompts` and `GET origins` for researchers,
//! `POST script {"scenarios":["stuck","ok"]}`, `POST advance {"ms":1000}` for a virtual clock.

mod ask;
mod effort;
mod scenario;
mod script;
mod timeline;

mod faults;
mod hostile;
mod phrases;
mod prices;
mod report;
mod sources;
mod topic;

mod run;
mod render;
mod runs;
mod state;
mod stats;

mod agent;
mod openai;
mod anthropic;
mod search;
mod sonar;
mod gemini;

mod switches;
mod calls;
mod model;
mod web;

mod bucket;
mod transport_faults;
mod clock;
mod errors;
mod fastapi;
mod frame;
mod ids;
mod malformed;
mod wall_clock;

mod app;
mod control;
mod http;
mod journal;
mod limits;
mod socket;
mod stream;

mod simulator;
mod options;

pub use calls::{Calls, Lane, RequestCount};
pub use journal::SeenRequest;
pub use options::{ClockMode, Options, SonarMode};
pub use scenario::GUIDE;
pub use simulator::Simulator;
pub use stats::{RunStats, Stats};
