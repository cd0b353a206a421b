//! `outlast ui`.

use std::net::SocketAddr;
use std::process::Stdio;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::browser::Browser;
use crate::support::{World, binary, start};

/// The page of the command line, and its link.
struct Ui {
    child: Child,
    address: SocketAddr,
    entry: String,
}

impl Ui {
    async fn start(world: &World, flags: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .args(["ui", "--no-open"])
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
        assert_eq!((shown.status, shown.location.as_deref()), (303, Some("/ui")), "{}", shown.body);
        browser.keep(&shown);
        browser
    }
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

/// I8: what the page asks goes on when the page has ended, and other owners' jobs are shown with `--all` alone.
#[tokio::test]
async fn i8_another_process_carries_what_the_page_asks() {
    let mut world = World::new().await;
    let mut ui = Ui::start(&world, &[]).await;
    let browser = ui.opened().await;
    let job = browser.ask("Who carries this? [[sim:ok;words=60;hold]]").await;
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

/// P4: the page does not say that a job runs whose worker was killed, before and while it is open.
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
