//! Floods of connections and of bytes: others are still served, and the memory stays bounded.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::target::{START, Target, start};
use crate::web::{ANN, BOB, Web};
use crate::{Setting, Verdict};

/// Opens more connections than the server can accept, none of which reads its answers; half of them send no token.
pub(crate) async fn connections(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    let (descriptors, flood): (u32, usize) = if setting.short { (512, 1000) } else { (4096, 6000) };
    let web = Web::serve(&mut target, &[], Some(descriptors)).await;
    let health = format!("GET /health HTTP/1.1\r\nHost: {}\r\n\r\n", web.address).repeat(4);
    let listing = web.request(ANN, "tools/list", "", json!({}), json!({}));
    let requests = Arc::new([health.into_bytes(), listing]);
    let mut opening = JoinSet::new();
    for number in 0..flood {
        let (address, requests) = (web.address, Arc::clone(&requests));
        opening.spawn(async move {
            let mut stream = TcpStream::connect(address).await.ok()?;
            stream.write_all(&requests[number % 2]).await.ok()?;
            Some(stream)
        });
    }
    // A server that accepts no more connections leaves the rest waiting.
    let mut open = Vec::new();
    let all_open = async {
        while let Some(opened) = opening.join_next().await {
            open.extend(opened.ok().flatten());
        }
    };
    drop(tokio::time::timeout(Duration::from_secs(5), all_open).await);
    // Another owner connects while all of them are open, and needs the provider as well. The kernel delays some
    // connections of the flood by a second, so they arrive later and may displace the owner's connection before its
    // token is read. Then the owner connects again, as HTTP clients do.
    let mut tries = 0;
    let started = loop {
        tries += 1;
        match web.call(BOB, START, &start(1, "ok;words=60;delay_ms=0")).await {
            Err(_) if tries < 3 => {}
            started => break started,
        }
    };
    let started = started.map_err(|answer| format!("another owner is not served: {answer}"))?;
    if started["isError"] == true {
        return Err(format!("another owner is refused: {started}"));
    }
    target.all_become("succeeded").await?;
    Ok(format!("{} connections, another owner's job completed", open.len()))
}

/// Many bodies of 4 MiB at once.
pub(crate) async fn bodies(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    let (bodies, most_megabytes) = if setting.short { (100, 400) } else { (200, 600) };
    target.set("OUTLAST_RATE_PER_MINUTE", "100000");
    let web = Web::serve(&mut target, &[], None).await;
    let text = "x".repeat(4_000_000);
    let arguments = json!({ "messages": [{ "role": "user", "content": text }] });
    let request = Arc::new(web.tool_call(ANN, START, &arguments, json!({})));
    let all_sent = Arc::new(Barrier::new(bodies));
    let mut sending = Vec::new();
    for _ in 0..bodies {
        let (address, request, all_sent) =
            (web.address, Arc::clone(&request), Arc::clone(&all_sent));
        sending.push(tokio::spawn(async move {
            let Ok(mut stream) = TcpStream::connect(address).await else { return };
            // All but the last byte: the server has to keep the bytes that it got.
            drop(stream.write_all(&request[..request.len() - 1]).await);
            drop(tokio::time::timeout(Duration::from_secs(5), all_sent.wait()).await);
            drop(stream.write_all(&request[request.len() - 1..]).await);
            tokio::time::sleep(Duration::from_secs(2)).await;
        }));
    }
    for sent in sending {
        drop(tokio::time::timeout(Duration::from_secs(30), sent).await);
    }
    let pid = web.process.pid();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let megabytes: u64 = peak.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024;
    let counted = format!("{bodies} bodies of 4 MB, peak {megabytes} MB");
    web.call(BOB, START, &start(1, "ok;words=60;delay_ms=0"))
        .await
        .map_err(|answer| format!("{counted}, another owner is not served: {answer}"))?;
    if megabytes > most_megabytes { Err(counted) } else { Ok(counted) }
}
