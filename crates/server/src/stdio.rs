//! Serves one client over standard input and output. The end of input is a normal end, whenever it comes.

mod lines;
mod input;

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use outlast_engine::Shutdown;
use rmcp::ServiceExt;
use rmcp::transport::io::stdio_pipes;

use crate::server::Server;
use lines::LineTransport;

/// The default for the maximum number of unanswered requests. Further requests are refused, because each takes memory until
/// it is answered.
pub const MAX_UNANSWERED: usize = 1_000;
/// The time that calls have to be answered after a stop was requested.
const ANSWER_GRACE: Duration = Duration::from_millis(500);
/// The time that the connection has to close after that.
const CLOSE_GRACE: Duration = Duration::from_millis(500);

/// The client does not speak MCP.
#[derive(Debug, thiserror::Error)]
#[error("the client does not speak MCP: {0}")]
pub struct ServeError(String);

/// Serves until the input ends or `stop` is requested; requests `stop` itself when the input ends.
///
/// Calls in progress are answered with the current state, then the connection closes. `max_unanswered` is the maximum number
/// of requests that may be unanswered at a time.
pub fn serve_stdio(
    server: Server,
    stop: Shutdown,
    max_unanswered: usize,
) -> BoxFuture<'static, Result<(), ServeError>> {
    serve(server, stop, max_unanswered).boxed()
}

async fn serve(server: Server, stop: Shutdown, max_unanswered: usize) -> Result<(), ServeError> {
    let (input, output) = stdio_pipes();
    let transport = LineTransport::new(input, output, max_unanswered);
    let input_ended = transport.input_ended.clone();
    let service = tokio::select! {
        served = server.clone().serve(transport) => match served {
            Ok(service) => service,
            Err(_) if stop.is_asked() => return Ok(()),
            Err(_) if input_ended.is_cancelled() => {
                stop.ask();
                return Ok(());
            }
            Err(error) => return Err(ServeError(error.to_string().chars().take(200).collect())),
        },
        () = stop.wait() => return Ok(()),
    };
    let closer = service.cancellation_token();
    let mut ended = std::pin::pin!(service.waiting());
    tokio::select! {
        biased;
        () = stop.wait() => {}
        // Requested at once, because rmcp waits for calls in progress.
        () = input_ended.cancelled() => stop.ask(),
        _ = &mut ended => return Ok(()),
    }
    // Waiting polls end with the stop and answer "still running". At the end of input rmcp ends by itself once every call
    // was answered, including calls that it has not yet passed to the handler.
    if input_ended.is_cancelled() {
        if tokio::time::timeout(ANSWER_GRACE, &mut ended).await.is_ok() {
            drop(tokio::time::timeout(CLOSE_GRACE, server.calls_answered()).await);
            return Ok(());
        }
    } else {
        drop(tokio::time::timeout(ANSWER_GRACE, server.calls_answered()).await);
    }
    closer.cancel();
    drop(tokio::time::timeout(CLOSE_GRACE, ended).await);
    Ok(())
}
