//! The settings of the researcher.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::NanoUsd;
use outlast_http::ProxyOptions;
use outlast_library::Library;
use outlast_sources::{FetchOptions, PdfReader};

use crate::search::SearchTool;

/// The time to connect to the model server or the search service.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of the researcher. The caller reads them; this crate reads no environment.
pub struct Settings {
    /// The address of an OpenAI-compatible server, such as `http://127.0.0.1:11434/v1`.
    pub model_url: String,
    /// The model's name at that server.
    pub model: String,
    /// The key for the model server.
    pub api_key: Option<String>,
    /// The model's window in tokens; 0 asks the server.
    pub context_tokens: u32,
    /// The number of requests to the model at a time; 0 chooses 1 for a server on this machine and 4 for others.
    pub parallel: usize,
    /// The prices.
    pub prices: Prices,
    /// The service that searches.
    pub search: SearchBackend,
    /// The maximum sum of the bounds of all steps that are sent again after their answer was lost (K3).
    pub max_resend: NanoUsd,
    /// The maximum number of pages that a run reads; 0 leaves it to the effort.
    pub max_pages: u32,
    /// The maximum number of tokens of a run, read and written; 0 leaves it to the effort.
    pub max_tokens: u64,
    /// The maximum time of a run, over all attempts.
    pub max_minutes: u32,
    /// The longest time that an attempt waits for a server that cannot be reached.
    pub patience: Duration,
    /// The rules of fetching pages.
    pub fetch: FetchOptions,
    /// The converter of PDFs.
    pub pdf: Option<PdfReader>,
    /// The proxy to the model server and the search service.
    pub proxy: Option<ProxyOptions>,
}

impl Settings {
    /// The usual [`Settings::patience`]: enough for a model server to be restarted.
    pub const PATIENCE: Duration = Duration::from_secs(60);
}

/// The prices of a run; `None` for an unknown price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// The price of a million tokens that the model reads.
    pub input: Option<NanoUsd>,
    /// The price of a million tokens that the model writes.
    pub output: Option<NanoUsd>,
    /// The price of 1,000 searches.
    pub search: Option<NanoUsd>,
}

impl Prices {
    /// The prices of a model and a search service on this machine.
    pub const FREE: Self =
        Self { input: Some(NanoUsd(0)), output: Some(NanoUsd(0)), search: Some(NanoUsd(0)) };
}

/// The service that searches.
#[derive(Clone)]
pub enum SearchBackend {
    /// A SearXNG server.
    Searxng {
        /// Its address, such as `http://127.0.0.1:8888`.
        url: String,
        /// The key, sent as a bearer token.
        api_key: Option<String>,
    },
    /// The user's own folders.
    Library(Library),
    /// A search tool of an MCP server.
    Tool {
        /// Its name, `UPSTREAM.TOOL`.
        name: String,
        tool: Arc<dyn SearchTool>,
    },
}
