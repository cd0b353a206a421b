//! `outlast ui`.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::browser::Browser;
use crate::support::{World, binary, eventually, start};

/// The page of the command line, and its link.
struct Ui {
    child: Child,
    address: SocketAddr,
    entry: String,
}

impl Ui {
    async fn start(world: &World, flags: &[&str]) -> Self {
        let flags: Vec<&str> = ["--no-open"].into_iter().chain(flags.iter().copied()).collect();
        Self::start_with(world, &flags).await
    }

    /// Starts it with a browser.
    async fn start_opening(world: &World) -> Self {
        Self::start_with(world, &[]).await
    }

    async fn start_with(world: &World, flags: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .arg("ui")
            .args(flags)
            .env_clear()
            .envs(world.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let link = lines.next_line().await.unwrap().expect("a link");
        let rest = link.strip_prefix("http://").unwrap_or_else(|| panic!("{link}"));
        let (address, entry) = rest.split_once('/').unwrap();
        Self { child, address: address.parse().unwrap(), entry: format!("/{entry}") }
    }

    async fn opened(&self) -> Browser {
        let mut browser = Browser::new(self.address);
        let shown = browser.get(&self.entry).await;
        assert_eq!(shown.status, 200, "{}", shown.body);
        assert!(shown.head.to_lowercase().contains("refresh: 0;url=/ui"), "{}", shown.head);
        browser.keep(&shown);
        browser
    }
}

/// I5: a person's navigation uses the link up; prefetches by programs do not.
#[tokio::test]
async fn i5_a_head_or_a_prefetch_does_not_use_the_link_up() {
    let world = World::new().await;
    let ui = Ui::start(&world, &[]).await;
    assert!(format!("http://{}{}", ui.address, ui.entry).len() <= 80, "{}", ui.entry);
    let program = Browser::new(ui.address);
    let cases: [(&str, &[(&str, &str)]); 6] = [
        ("HEAD", &[]),
        ("GET", &[("Sec-Purpose", "prefetch;prerender")]),
        ("GET", &[("Purpose", "prefetch")]),
        ("GET", &[("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "empty")]),
        ("GET", &[("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")]),
        ("HEAD", &[("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]),
    ];
    for (method, headers) in cases {
        let shown = program.send(&format!("{method} {}", ui.entry), headers, "").await;
        assert_eq!((shown.status, shown.cookie), (204, None), "{method} {headers:?}");
    }
    ui.opened().await;
}

/// I5: signing out ends the session at the server, and no other session of the same owner.
#[tokio::test]
async fn i5_a_copy_of_the_cookie_is_worthless_after_signing_out() {
    let world = World::new().await;
    let ui = Ui::start(&world, &[]).await;
    let browser = ui.opened().await;
    let name = format!("outlast_page_{}=", ui.address.port());
    assert!(browser.cookie.starts_with(&name), "{}", browser.cookie);
    let copy = browser.clone();
    assert_eq!(copy.get("/ui").await.status, 200);
    assert_eq!(browser.post("/ui/sign-out", &[]).await.status, 303);
    assert_eq!(copy.get("/ui").await.status, 401);
    assert_eq!(copy.get("/ui/events").await.status, 401);
}

/// I5: other users of the machine can read the arguments of a program, so the browser gets a file that only its user
/// can read.
#[tokio::test]
async fn i5_the_browser_is_given_a_private_file_and_not_the_link() {
    let mut world = World::new().await;
    let folder = world.data_dir().parent().unwrap().join("bin");
    let (arguments, shown) = (folder.join("arguments"), folder.join("shown.html"));
    std::fs::create_dir_all(&folder).unwrap();
    let script = format!(
        "#!/bin/sh\ncp -p \"$1\" {1}; stat -c %a \"$1\" \"$(dirname \"$1\")\" > {0}.new\n\
         printf '%s\\n' \"$@\" >> {0}.new; mv {0}.new {0}\n",
        arguments.display(),
        shown.display()
    );
    let program = folder.join("xdg-open");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    world.set("PATH", &path);
    let ui = Ui::start_opening(&world).await;
    eventually("the browser was opened", || arguments.exists()).await;
    let reported = std::fs::read_to_string(&arguments).unwrap();
    let lines: Vec<&str> = reported.lines().collect();
    let [file_mode, folder_mode, file] = lines[..] else { panic!("{reported}") };
    assert_eq!((file_mode, folder_mode), ("600", "700"));
    assert!(!file.contains("code=") && file.ends_with(".html"), "{file}");
    let page = std::fs::read_to_string(&shown).unwrap();
    let link = format!("http://{}{}", ui.address, ui.entry);
    assert!(page.contains(&format!("content=\"0;url={link}\"")), "{page}");
    ui.opened().await;
    eventually("the file is removed", || !std::path::Path::new(file).exists()).await;
}

#[tokio::test]
async fn i1_the_link_opens_the_page_once_and_ctrl_c_ends_it() {
    let world = World::new().await;
    let mut ui = Ui::start(&world, &[]).await;
    assert!(ui.address.ip().is_loopback());
    let stranger = Browser::new(ui.address);
    assert_eq!(stranger.get("/ui").await.status, 401);
    assert_eq!(stranger.get("/ui/enter?code=0000").await.status, 401);
    let browser = ui.opened().await;
    assert_eq!(browser.get("/ui").await.status, 200);
    assert_eq!(stranger.get(&ui.entry).await.status, 401, "a link is good once");
    let mcp = stranger.send("POST /mcp", &[("Content-Type", "application/json")], "{}").await;
    assert_eq!(mcp.status, 401, "no MCP is served");
    outlast_testkit::mcp_process::signal(ui.child.id().unwrap(), Signal::INT);
    assert!(ui.child.wait().await.unwrap().code().is_some());
}

/// I8: requests of the page continue after the page has ended, and other owners' jobs are shown only with `--all`.
#[tokio::test]
async fn i8_another_process_runs_a_question_of_the_page() {
    let mut world = World::new().await;
    let mut ui = Ui::start(&world, &[]).await;
    let browser = ui.opened().await;
    let job = browser.ask("Who runs this? [[sim:ok;words=60;hold]]").await;
    browser.until(&job, "state running").await;
    ui.child.kill().await.unwrap();
    let id = job.rsplit('/').next().unwrap().to_owned();
    assert_eq!(world.shown(&id).await["state"], "running");

    world.set("OUTLAST_OWNER", "someone-else");
    let own = Ui::start(&world, &[]).await;
    let own_page = own.opened().await;
    assert!(!own_page.get("/ui").await.body.contains(&id));
    assert_eq!(own_page.get(&job).await.status, 404);
    let all = Ui::start(&world, &["--all"]).await;
    let operator = all.opened().await;
    let list = operator.get("/ui").await.body;
    assert!(list.contains(&id) && list.contains("name=\"owner\""), "{list}");
    assert_eq!(operator.get(&job).await.status, 200);
    let cancel = operator.post(&format!("{job}/cancel"), &[("confirmed", "yes")]).await;
    assert_eq!(cancel.status, 404, "only their own can be changed");
    world.set("OUTLAST_OWNER", "local");
    world.run(&["jobs", "cancel", &id]).await;
}

/// P4: the page does not show a job as running whose worker was killed, before and while the page is open.
#[tokio::test]
async fn p4_the_page_notices_a_dead_worker() {
    let world = World::new().await;
    let (ui, mut server) = (Ui::start(&world, &[]).await, world.serve().await);
    let browser = ui.opened().await;
    let id = start(&mut server, "stuck").await;
    let job = format!("/ui/jobs/{id}");
    browser.until(&job, "state running").await;
    server.kill().await;
    browser.until(&job, "state queued").await;
    browser.until(&job, "no live worker").await;
}
