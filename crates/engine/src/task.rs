//! Tasks of their own.

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;

/// Starts a task, as `tokio::spawn` does. What it does is behind a box, so that tokio's part is compiled once for all tasks of a result and not
/// twice for each of them.
pub fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task.boxed())
}
