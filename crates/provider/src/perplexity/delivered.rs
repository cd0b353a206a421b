//! A run that was over when it began: the answer to the submit was the result.

use async_trait::async_trait;
use outlast_core::{Output, ProviderError, RemoteRun, Run, Step};

/// A result that is already here.
pub(super) struct Delivered {
    pub(super) remote: RemoteRun,
    pub(super) output: Box<Output>,
    /// The answer as it came.
    pub(super) raw: Vec<u8>,
}

#[async_trait]
impl Run for Delivered {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        Ok(Step::Done { output: self.output.clone(), raw: Some(self.raw.clone()) })
    }
}
