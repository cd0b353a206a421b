//! Lists the tools of an HTTP server, and shows how to send any request of the protocol: `cargo run -p
//! outlast-client --example tools -- http://127.0.0.1:8080/mcp [TOKEN]`

#![expect(clippy::print_stdout, reason = "an example speaks to a person")]

use std::time::Duration;

use outlast_client::{CallOptions, Client, ConnectOptions, Endpoint};
use serde_json::Value;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let mut endpoint = Endpoint::new(&words.next().ok_or("give the address of a server")?)?;
    if let Some(token) = words.next() {
        endpoint = endpoint.bearer(&token)?;
    }
    let client = Client::http(endpoint, ConnectOptions::default()).await?;
    let options = CallOptions::default().timeout(Duration::from_secs(10));
    let listed = client.request("tools/list", Value::Null, options).await;
    client.close().await;
    for tool in listed?["tools"].as_array().into_iter().flatten() {
        println!("{}", tool["name"].as_str().unwrap_or_default());
    }
    Ok(())
}
