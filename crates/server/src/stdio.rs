//! One client over standard input and output. The end of input is a normal end, at any time.

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

/// Requests that may be unanswered at a time, unless a caller says otherwise. More are refused, because each takes memory until it
/// is answered.
pub const MAX_UNANSWERED: usize = 1_000;
/// How long calls may take to be answered after a stop was asked.
const ANSWER_GRACE: Duration = Duration::from_millis(500);
/// How long the connection may take to close after that.
const CLOSE_GRACE: Duration = Duration::from_millis(500);

/// The conversation could not be held: what the client sends is not MCP.
#[derive(Debug, thiserror::Error)]
#[error("the client does not speak MCP: {0}")]
pub struct ServeError(String);

/// Serves until the input ends or `stop` is asked; asks `stop` itself when the input ends.
///
/// Calls under way are answered with what is known, then the connection closes. `max_unanswered` is how many requests may be
/// unanswered at a time.
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
        () = stop.asked() => return Ok(()),
    };
    let closer = service.cancellation_token();
    let mut ended = std::pin::pin!(service.waiting());
    tokio::select! {
        biased;
        () = stop.asked() => {}
        // Asked at once, because rmcp waits for calls under way.
        () = input_ended.cancelled() => stop.ask(),
        _ = &mut ended => return Ok(()),
    }
    // Parked polls end with the stop and answer "still running". At the end of input rmcp ends by itself once every
    // call was answered, those among them that it has not even handed over yet.
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
