//! The surface that strangers can reach: the terminal of a reader, the memory behind the sign-in form, the one-time
//! link of the page.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::target::Target;
use crate::web::Web;
use crate::{Setting, Verdict};

/// Shows a report whose text and entities would control the terminal.
pub(crate) async fn terminal(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let question = "What is a lease? [[sim:inject;line=1000;words=60;delay_ms=0]]";
    let (code, ..) = target.run(&["research", question]).await;
    if code != Some(0) {
        return Err(format!("the research ended with {code:?}"));
    }
    let (_, listed, _) = target.run(&["jobs", "list", "--json"]).await;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let jobs = listed["jobs"].as_array().or_else(|| listed.as_array()).unwrap();
    let (job, conversation) =
        (jobs[0]["id"].as_str().unwrap(), jobs[0]["conversation"].as_str().unwrap());
    let mut printed = 0;
    for arguments in [
        &["jobs", "show", job][..],
        &["jobs", "list"],
        &["conversations", "show", conversation],
        &["conversations", "export", conversation],
        &["conversations", "export", conversation, "--format", "html"],
    ] {
        let screen = on_a_terminal(&target, arguments);
        printed += screen.len();
        if let Some(order) = order_to_the_terminal(&screen) {
            return Err(format!("`outlast {}` sends {order:?}", arguments[..2].join(" ")));
        }
    }
    Ok(format!("{printed} bytes on a terminal, none of them an order but our colours"))
}

/// Returns a command's output on a terminal of 100 columns.
fn on_a_terminal(target: &Target, arguments: &[&str]) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let size = Winsize { ws_row: 50, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&slave, size).unwrap();
    let same = || Stdio::from(slave.try_clone().unwrap());
    let mut child = std::process::Command::new(&target.binary)
        .args(arguments)
        .env_clear()
        .env("TERM", "xterm-256color")
        .envs(target.environment.iter().cloned())
        .stdin(same())
        .stdout(same())
        .stderr(same())
        .spawn()
        .unwrap();
    drop(slave);
    let (mut screen, mut seen, mut buffer) = (File::from(master), Vec::new(), [0; 4096]);
    // The end of a terminal is an error on Linux.
    while let Ok(read @ 1..) = screen.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..read]);
    }
    child.wait().unwrap();
    String::from_utf8_lossy(&seen).into_owned()
}

/// Returns the first control sequence that is not one of our colours, or the first character that reorders or hides
/// text.
fn order_to_the_terminal(screen: &str) -> Option<String> {
    let text = screen.replace("\r\n", "\n");
    let mut rest = text.as_str();
    loop {
        let at = rest.find(|character: char| {
            (character.is_control() && !matches!(character, '\n' | '\t'))
                || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e0fff}')
        })?;
        rest = &rest[at..];
        let color = rest.strip_prefix("\x1b[").and_then(|code| code.split_once('m'));
        match color {
            Some((code, after)) if code.bytes().all(|it| it.is_ascii_digit() || it == b';') => {
                rest = after;
            }
            _ => return Some(rest.chars().take(12).collect()),
        }
    }
}

/// Opens many connections that each send most of a sign-in form and never its end.
pub(crate) async fn sign_in_bodies(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    let (connections, most_megabytes) = if setting.short { (300, 40) } else { (1_500, 120) };
    let web = Web::serve(&mut target, &[], None).await;
    // The cost of a first request does not belong to the flood.
    drop(web.say(b"GET /ui HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await);
    let before = resident_kib(&web.process);
    let head = format!(
        "POST /ui/sign-in HTTP/1.1\r\nHost: {}\r\nSec-Fetch-Site: same-origin\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n",
        web.address
    );
    let mut sending = JoinSet::new();
    for number in 0..connections {
        // Half declare their length, half send chunks; some stay within every limit.
        let (length, bytes) = if number % 3 == 0 { (4_000, 3_990) } else { (262_144, 262_000) };
        let body = "a".repeat(bytes);
        let message = match number % 2 {
            0 => format!("{head}Content-Length: {length}\r\n\r\n{body}"),
            _ => format!("{head}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}"),
        };
        let address = web.address;
        sending.spawn(async move {
            let mut stream = TcpStream::connect(address).await.ok()?;
            let sent = stream.write_all(message.as_bytes());
            drop(tokio::time::timeout(Duration::from_secs(10), sent).await);
            Some(stream)
        });
    }
    let mut open = Vec::new();
    while let Some(sent) = sending.join_next().await {
        open.extend(sent.ok().flatten());
    }
    let mut most = 0;
    for _ in 0..20 {
        most = most.max(resident_kib(&web.process).saturating_sub(before) / 1024);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    if most > most_megabytes {
        return Err(format!("{} unauthenticated connections take {most} MB", open.len()));
    }
    if !setting.short {
        // Every body has a deadline: no connection stays open for ever.
        let mut stream = open.swap_remove(0);
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        if tokio::time::timeout(Duration::from_secs(45), ended).await.is_err() {
            return Err("a body that never ends is waited for without a limit".to_owned());
        }
    }
    Ok(format!("{} unauthenticated connections, {most} MB more", connections))
}

fn resident_kib(process: &McpProcess) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Checks the link that signs in: it must not be in the arguments of a program, used up by a HEAD, or valid after
/// signing out.
pub(crate) async fn one_time_link(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    let folder = target.folder.path().join("bin");
    let seen = target.folder.path().join("arguments");
    std::fs::create_dir(&folder).unwrap();
    let browser = folder.join("xdg-open");
    let script =
        format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {0}.new; mv {0}.new {0}\n", seen.display());
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    target.set("PATH", &format!("{}:/usr/bin:/bin", folder.display()));
    let mut page = target.command(&["ui"]).spawn().unwrap();
    let mut lines = BufReader::new(page.stdout.take().unwrap()).lines();
    let link = lines.next_line().await.unwrap().unwrap();
    let (address, path) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let code = path.split_once("code=").unwrap().1.to_owned();
    let arguments = arguments_of_the_browser(&seen).await?;
    if arguments.contains(&code) {
        return Err(
            "every user of the machine can read the link among the browser's arguments".to_owned()
        );
    }
    if link.len() > 80 {
        return Err(format!("the link has {} columns", link.len()));
    }
    let ask = async |method: &str, path: &str, cookie: &str| -> (String, Option<String>) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "{method} /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nSec-Fetch-Site: same-origin\r\n\
             Cookie: {cookie}\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        drop(stream.read_to_string(&mut answer).await);
        let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        (status, cookie.and_then(|it| it.split(';').next()).map(ToOwned::to_owned))
    };
    drop(ask("HEAD", path, "").await);
    let (_, cookie) = ask("GET", path, "").await;
    let Some(cookie) = cookie else { return Err("a HEAD request uses the link up".to_owned()) };
    if ask("GET", "ui", &cookie).await.0 != "200" {
        return Err("the link signs nobody in".to_owned());
    }
    drop(ask("POST", "ui/sign-out", &cookie).await);
    if ask("GET", "ui", &cookie).await.0 == "200" {
        return Err("a copy of the cookie still works after signing out".to_owned());
    }
    Ok("the link is in a file, survives a HEAD and ends with its session".to_owned())
}

async fn arguments_of_the_browser(seen: &Path) -> Result<String, String> {
    for _ in 0..200 {
        if let Ok(arguments) = std::fs::read_to_string(seen) {
            return Ok(arguments);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err("no browser was opened".to_owned())
}
