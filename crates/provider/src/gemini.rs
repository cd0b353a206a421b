//! Gemini as a research provider.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    Again, BeginError, BoxError, Nature, Profile, Provider, ProviderError, RemoteRun, RemoteStop,
    Resumes, Run, Trouble,
};
use serde_json::Value;

use crate::provider_error::provider_error;
use crate::vendor::{Checked, KeyHeader, Service, Vendor, VendorOptions};

/// How Gemini's service is called.
pub const VENDOR: Vendor = Vendor {
    name: "Gemini",
    key_variable: "GEMINI_API_KEY",
    base_url_variable: "GEMINI_BASE_URL",
    proxy_variable: "GEMINI_PROXY",
    querying: "Querying Gemini...",
    retired_hint: "update outlast",
    key_header: KeyHeader::Named("x-goog-api-key"),
    headers: &[],
};

/// Gemini as a provider.
#[derive(Clone)]
pub struct Gemini {
    service: Service,
}

impl Gemini {
    /// The name in [`RemoteRun::provider`].
    pub const NAME: &'static str = "gemini";

    /// Makes the adapter; nothing is sent yet.
    pub fn new(options: VendorOptions) -> Result<Self, BoxError> {
        Ok(Self { service: Service::new(&VENDOR, options)? })
    }

    /// What a worker must have to run this adapter's jobs: the same service and the same key.
    pub fn profile(&self) -> Profile {
        self.service.profile(Self::NAME)
    }

    /// Asks the service for something that costs nothing, to see that it answers and takes the key.
    pub async fn check(&self, limit: Duration) -> Result<Checked, ProviderError> {
        self.service.check(limit).await
    }
}

#[async_trait]
impl Provider for Gemini {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn nature(&self, _ask: &Value) -> Nature {
        Nature { again: Again::Never, resumes: Resumes::Always, stops: true }
    }

    async fn begin(&self, _ask: &Value, _key: &str) -> Result<Box<dyn Run>, BeginError> {
        Err(BeginError::NotSent(not_built()))
    }

    async fn resume(&self, _ask: &Value, _run: &RemoteRun) -> Result<Box<dyn Run>, ProviderError> {
        Err(not_built())
    }

    async fn stop(&self, _run: &RemoteRun) -> Result<RemoteStop, ProviderError> {
        Ok(RemoteStop::Unsupported)
    }
}

fn not_built() -> ProviderError {
    provider_error(Trouble::Rejected, "this provider is not built yet")
}
