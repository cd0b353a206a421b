//! Calls a tool of a program, with a timeout that progress resets: `cargo run -p outlast-client --example call
//! -- TOOL JSON PROGRAM [ARGUMENT]...`

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example speaks to a person")]

use std::time::Duration;

use outlast_client::{CallOptions, Client, ConnectOptions, ProgramToStart};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(tool), Some(json), Some(program)) = (words.next(), words.next(), words.next()) else {
        return Err("give a tool, its arguments as JSON, and a program".into());
    };
    let arguments = serde_json::from_str(&json)?;
    let client =
        Client::spawn(ProgramToStart::new(program).args(words), ConnectOptions::default()).await?;
    eprintln!("it speaks {}", client.protocol().unwrap_or_default());

    let options = CallOptions::default()
        .timeout(Duration::from_secs(60))
        .reset_timeout_on_progress()
        .max_total_timeout(Duration::from_secs(3 * 3600))
        .on_progress(|progress| eprintln!("  {progress}"));
    let called = client.call_tool(&tool, arguments, options).await;
    // Close before looking at the error, so that the program can exit cleanly in either case.
    client.close().await;
    println!("{}", called?.text);
    Ok(())
}
