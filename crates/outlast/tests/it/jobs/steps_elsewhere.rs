//! The steps of a command whose worker is gone, and of one whose job another machine has taken over (K12).

use std::path::Path;

use outlast_testkit::mcp_process::{McpProcess, Signal};

use super::steps::{as_strs, printed, shop, shop_within};
use super::{ended, runs, start};
use crate::support::{World, binary, eventually};

/// Steps outside of the process group of the command, which neither the worker nor its guard ends: they end by
/// themselves.
const LEFT: &str = "
outlast step slow --rerun -- sh ./slow.sh > slow.out; echo $? > slow.code
outlast step next -- touch next; echo $? > next.code
";
const SLOW: &str = "
echo $$ > pid.$(cat /proc/sys/kernel/hostname)
while [ ! -e go ]; do sleep 0.01; done
echo slow >> ran
echo end
";

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned()
}

/// K12: after a kill -9 of the worker the command of a step is ended, and the step returns 75.
#[tokio::test]
async fn k12_a_step_returns_75_when_its_worker_is_killed() {
    let shop = shop("setsid sh ./left.sh", "").await;
    std::fs::write(shop.file("left.sh"), LEFT).unwrap();
    std::fs::write(shop.file("slow.sh"), SLOW).unwrap();
    let mut server = shop.serve().await;
    start(&mut server, "script", "").await;
    let pid = shop.pid(&format!("pid.{}", host())).await;
    server.kill().await;
    eventually("both steps end", || shop.text("next.code").ends_with('\n')).await;
    assert_eq!((shop.text("slow.code"), shop.text("next.code")), ("75\n".into(), "75\n".into()));
    assert_eq!(shop.text("slow.out"), "", "nothing is printed before it is recorded");
    assert!(!runs(pid), "the command of the step was ended");
    assert!(!shop.file("next").exists() && !shop.file("ran").exists());
}

/// K12: once another machine has taken the job over, the steps of the old command are refused, and its child is ended.
#[tokio::test]
async fn k12_the_steps_of_a_command_that_was_taken_over_are_refused() {
    const SCRIPT: &str = r#"
outlast step first -- sh -c 'echo first >> ran; echo first'
if [ "$(cat /proc/sys/kernel/hostname)" != other ]; then exec setsid -w sh ./left.sh; fi
outlast step slow --rerun -- sh ./slow.sh
echo all
"#;
    let mut shop = shop_within(World::on_postgres().await, SCRIPT, "");
    std::fs::write(shop.file("left.sh"), LEFT).unwrap();
    std::fs::write(shop.file("slow.sh"), SLOW).unwrap();
    let lease = ["--tools", "jobs", "--lease-ms", "1500"];
    let mut here = shop.serve_with(&lease).await;
    let id = start(&mut here, "script", "").await;
    let left = shop.pid(&format!("pid.{}", host())).await;

    let elsewhere = shop.world.data_dir().join("elsewhere");
    shop.world.set("OUTLAST_DATA_DIR", elsewhere.to_str().unwrap());
    let config = shop.config();
    let serve = ["serve", "--config", &config].into_iter().chain(lease);
    let mut other = on_another_host(&shop.world, &serve.collect::<Vec<_>>()).await;
    // It goes on when its lease is over, like a machine whose network comes back.
    here.signal(Signal::STOP);
    shop.pid("pid.other").await;
    assert!(runs(left), "this worker cannot end a command on another machine");
    here.signal(Signal::CONT);
    eventually("both steps end", || shop.text("next.code").ends_with('\n')).await;
    assert_eq!((shop.text("slow.code"), shop.text("next.code")), ("75\n".into(), "75\n".into()));
    assert!(!runs(left), "the command of the step was ended");
    assert!(!shop.file("next").exists());

    shop.go();
    let got = ended(&mut other, &id).await;
    assert_eq!(printed(&got), "first\nend\nall\n", "{got}");
    assert_eq!(shop.text("ran"), "first\nslow\n");
    assert_eq!(shop.text("slow.out"), "");
    assert_eq!(as_strs(&shop.steps(&id).await), [("first", "done"), ("slow", "done")]);
}

/// Starts the program with another host name, which needs root or the right to make user namespaces.
async fn on_another_host(world: &World, arguments: &[&str]) -> McpProcess {
    let flags = ["-u", "-Uru"].into_iter().find(|flags| {
        let probe = std::process::Command::new("unshare").args([*flags, "true"]).output();
        probe.is_ok_and(|ran| ran.status.success())
    });
    let flags = flags.expect(
        "this test needs another host name: run it as root, or allow user namespaces (`unshare -Uru` must work)",
    );
    let rename = "echo other > /proc/sys/kernel/hostname && exec \"$0\" \"$@\"";
    let program = [flags, "/bin/sh", "-c", rename, binary().to_str().unwrap()];
    let arguments = [&program[..], arguments].concat();
    McpProcess::start(Path::new("/usr/bin/unshare"), &arguments, &world.environment()).await
}
