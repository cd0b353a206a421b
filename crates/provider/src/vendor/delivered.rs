//! A run that was over when it began: the answer to the submit was the result.

use async_trait::async_trait;
use outlast_core::{Output, ProviderError, RemoteRun, Run, Step};

/// A result that is already here.
pub(crate) struct Delivered {
    remote: RemoteRun,
    /// Taken when it is returned: it may be megabytes, and is not copied.
    result: Option<(Box<Output>, Vec<u8>)>,
}

impl Delivered {
    /// With the answer as it came.
    pub(crate) fn new(remote: RemoteRun, output: Box<Output>, raw: Vec<u8>) -> Self {
        Self { remote, result: Some((output, raw)) }
    }
}

#[async_trait]
impl Run for Delivered {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        match self.result.take() {
            Some((output, raw)) => Ok(Step::Done { output, raw: Some(raw) }),
            // Nothing happens after the end.
            None => std::future::pending().await,
        }
    }
}
