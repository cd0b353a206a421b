//! Spawned tasks.

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;

/// Starts a task, as `tokio::spawn` does. The future is boxed, so that tokio's part is compiled once for all tasks of
/// the same result type, and not twice for each task.
pub fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task.boxed())
}
