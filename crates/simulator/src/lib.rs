//! A local server that speaks the Perplexity Agent API, with faults on request.
//!
//! It stands in for the provider in tests, in the demo and in benchmarks. It listens on 127.0.0.1 only, needs no network,
//! counts every run it creates as money spent, and writes the same report for the same question and seed.
//!
//! # Scenarios
//!
//! A scenario is chosen when a run is submitted and stays with it. The first of these that is present decides alone:
//! the header `X-Sim-Scenario`, an API key that contains `sim-<name>`, the last `[[sim:...]]` marker in `input`. Without
//! any of them all goes well.
//!
//! A scenario is one or more clauses joined by `|`; a clause is a name and its keys, joined by `;`:
//!
//! ```text
//! How do heat pumps age? [[sim:http;status=503;times=2|ok;words=50;delay_ms=0]]
//! ```
//!
//! Clauses add up. An unknown name, key or value is answered with 400, so that a misspelt fault cannot pass as success;
//! only in an API key is an unknown name taken for a part of the key.
//!
//! | Clause | Keys (default) | What happens |
//! |---|---|---|
//! | `ok` | | the run completes |
//! | `fail` | `at=search\|write` (write), `code` (server_error), `times` (always) | the first `times` runs of this input fail |
//! | `incomplete` | `output=partial\|empty` (partial) | the run ends `incomplete`, its text cut in half |
//! | `stuck` | `pings=true\|false` (false) | the run stays in progress after its first search, until cancelled |
//! | `http` | `status` (500), `times` (always), `on=submit\|poll\|attach\|cancel` (submit), `retry_after`, `body=json\|html\|empty` (json), `secret` | the first `times` requests of that kind for this input (submit) or run are answered with the error; several clauses follow one another |
//! | `drop_submit` | | the run is created, the socket closed before any answer |
//! | `no_id` | | the run is created, its answer lacks the id |
//! | `drop` | `after_events` (1), `times` (1) | each of the first `times` streams of a run is cut after that many events |
//! | `no_stream` | | re-attaching is answered with 400 |
//! | `no_terminal` | | streams end cleanly before the terminal event |
//! | `lost` | | every GET is answered with 404 |
//! | `cancel` | `mode=ok\|ignored` (ok) | `ignored`: a cancel is acknowledged and has no effect |
//!
//! Keys of the run itself may stand in any clause: `words` (by effort: 150 low, 600 medium, 1500 high), `sources`,
//! `searches` (4), `delay_ms` (live-like phases; else the length of the whole run, 0 = at once), `hold` (in progress after
//! the first search until released). A bare key means `true`.

mod ask;
mod scenario;
mod script;
mod timeline;

mod clause;
mod phrases;
mod prices;
mod report;
mod sources;
mod topic;

mod run;
mod runs;
mod stats;

mod agent;
mod search;
mod sonar;

mod clock;
mod errors;
mod fastapi;
mod frame;
mod ids;
mod wall;

mod control;
mod http;
mod journal;
mod limits;
mod socket;
mod stream;

mod simulator;

pub use journal::SeenRequest;
pub use simulator::{ClockMode, Options, Pages, Simulator, SonarMode};
pub use stats::{RunStats, Stats};
