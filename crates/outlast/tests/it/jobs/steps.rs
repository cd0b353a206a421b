//! `outlast step` (K12): steps of a script that are recorded with its job, whatever is killed.

use std::os::unix::net::UnixListener;
use std::process::Output;

use outlast_testkit::mcp_process::{McpProcess, Signal, signal};
use serde_json::Value;

use super::{Shop, ended, runs, start};
use crate::support::{World, binary, eventually};

/// A shop with one workflow, `script`, that runs this script with durable steps.
pub(super) async fn shop(script: &str, more: &str) -> Shop {
    shop_within(World::new().await, script, more)
}

/// The same in this world.
pub(super) fn shop_within(world: World, script: &str, more: &str) -> Shop {
    let program = binary().parent().unwrap().to_str().unwrap();
    let shop = Shop::within(
        world,
        &format!(
            "[[workflow]]\nname = \"script\"\ncommand = [\"/bin/sh\", \"./script.sh\"]\nsteps = true\n{more}\n\
             env = {{ PATH = \"{program}:/usr/local/bin:/usr/bin:/bin\" }}\n"
        ),
    );
    std::fs::write(shop.file("script.sh"), format!("set -e\n{script}\n")).unwrap();
    shop
}

impl Shop {
    pub(super) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// Returns the names and states of a job's steps.
    pub(super) async fn steps(&self, id: &str) -> Vec<(String, String)> {
        let ran = self.world.run(&["step", "list", id, "--json"]).await;
        let listed: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        let text = |step: &Value, key: &str| step[key].as_str().unwrap().to_owned();
        let steps = listed["steps"].as_array().unwrap().iter();
        steps.map(|step| (text(step, "name"), text(step, "state"))).collect()
    }
}

pub(super) fn as_strs(steps: &[(String, String)]) -> Vec<(&str, &str)> {
    steps.iter().map(|(name, state)| (name.as_str(), state.as_str())).collect()
}

/// Returns what the script printed.
pub(super) fn printed(got: &Value) -> &str {
    got["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

/// Runs the script to its end.
pub(super) async fn run(server: &mut McpProcess) -> (String, Value) {
    let id = start(server, "script", "").await;
    let got = ended(server, &id).await;
    (id, got)
}

const THREE: &str = r#"
outlast step one -- sh -c 'echo one >> ran; echo first'
while [ ! -e go ]; do echo $$ > pid; sleep 0.01; done
outlast step two -- sh -c 'echo two >> ran; echo second'
outlast step three -- sh -c 'echo three >> ran; echo third'
"#;

/// K12: kill -9 of the server between two steps: the job continues, and the finished step is printed from its record.
#[tokio::test]
async fn k12_a_finished_step_is_not_run_again_after_the_server_was_killed() {
    let shop = shop(THREE, "").await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "script", "").await;
    eventually("the first step is done", || shop.file("pid").exists()).await;
    assert_eq!(as_strs(&shop.steps(&id).await), [("one", "done")]);
    server.kill().await;
    shop.go();
    let mut server = shop.serve().await;
    let got = ended(&mut server, &id).await;
    assert_eq!(printed(&got), "first\nsecond\nthird\n", "{got}");
    assert_eq!(shop.text("ran"), "one\ntwo\nthree\n");
    let done = [("one", "done"), ("two", "done"), ("three", "done")];
    assert_eq!(as_strs(&shop.steps(&id).await), done);
}

/// K12: kill -9 of the script itself: the next try continues after the finished steps.
#[tokio::test]
async fn k12_a_finished_step_is_not_run_again_after_its_script_was_killed() {
    let shop = shop(THREE, "retries = 1").await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "script", "").await;
    let pid = shop.pid("pid").await;
    shop.go();
    signal(pid, Signal::KILL);
    let got = ended(&mut server, &id).await;
    assert_eq!(printed(&got), "first\nsecond\nthird\n", "{got}");
    assert_eq!(shop.text("ran"), "one\ntwo\nthree\n");
}

/// A step that reports its process, and waits.
pub(super) const INTERRUPTED: &str = r#"
outlast step first -- sh -c 'echo first >> ran'
outlast step slow OPTIONS -- sh -c 'echo slow >> ran; echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; echo end'
echo all
"#;

/// K12: a step whose end is unknown does not run again by itself.
#[tokio::test]
async fn k12_an_interrupted_step_runs_again_only_if_asked() {
    for (options, runs_again) in [("", false), ("--rerun", true)] {
        let shop = shop(&INTERRUPTED.replace("OPTIONS", options), "").await;
        let mut server = shop.serve().await;
        let id = start(&mut server, "script", "").await;
        let pid = shop.pid("pid").await;
        assert_eq!(as_strs(&shop.steps(&id).await)[1], ("slow", "running"));
        server.kill().await;
        eventually("the command of the step ends with its worker", || !runs(pid)).await;
        shop.go();
        let mut server = shop.serve().await;
        let got = ended(&mut server, &id).await;
        if runs_again {
            assert_eq!(printed(&got), "end\nall\n", "{got}");
            assert_eq!(shop.text("ran"), "first\nslow\nslow\n");
        } else {
            assert_eq!(got["status"], "failed", "{got}");
            assert_eq!(shop.text("ran"), "first\nslow\n");
            let steps = shop.steps(&id).await;
            assert_eq!(as_strs(&steps), [("first", "done"), ("slow", "interrupted")]);
        }
    }
}

/// K12: a step that fails passes its code on, and runs again in the next try.
#[tokio::test]
async fn k12_a_failed_step_runs_again_in_the_next_try() {
    let script = r#"
outlast step good -- sh -c 'echo good >> ran'
code=0
outlast step bad -- sh -c 'echo bad >> ran; [ -e fixed ] || exit 7; echo well' || code=$?
echo $code >> codes
touch fixed
exit $code
"#;
    let shop = shop(script, "retries = 1").await;
    let mut server = shop.serve().await;
    let (id, got) = run(&mut server).await;
    assert_eq!(printed(&got), "well\n", "{got}");
    assert_eq!(
        (shop.text("ran"), shop.text("codes")),
        ("good\nbad\nbad\n".into(), "7\n0\n".into())
    );
    let tries = [("good", "done"), ("bad", "failed"), ("bad", "done")];
    assert_eq!(as_strs(&shop.steps(&id).await), tries);
}

/// K12: the output is bytes, up to 1 MiB, and the same when it is printed again.
#[tokio::test]
async fn k12_an_output_is_recorded_as_bytes_up_to_its_limit() {
    let script = r#"
outlast step big -- cat blob > "out.$(ls out.* 2>/dev/null | wc -l)"
if outlast step huge -- cat blob blob > huge 2> why; then exit 9; fi
[ -e out.1 ] || exit 5
echo same
"#;
    let shop = shop(script, "retries = 1").await;
    let blob: Vec<u8> =
        (0..1_u64 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(shop.file("blob"), &blob).unwrap();
    let mut server = shop.serve().await;
    let (_, got) = run(&mut server).await;
    assert_eq!(printed(&got), "same\n", "{got}");
    for out in ["out.0", "out.1"] {
        assert!(std::fs::read(shop.file(out)).unwrap() == blob, "{out}");
    }
    assert_eq!(shop.text("huge"), "");
    assert!(shop.text("why").contains("larger than 1 MiB"), "{}", shop.text("why"));
}

/// K12: steps that cannot be recorded are refused, and nothing runs.
#[tokio::test]
async fn k12_nested_and_parallel_and_changed_steps_are_refused() {
    let script = r#"
outlast step outer -- sh -c 'outlast step inner -- touch nested' 2> nested.why || true
mkfifo pipe
outlast step twin -- sh -c 'echo > pipe; while [ ! -e free ]; do sleep 0.01; done' &
read _ < pipe
outlast step twin -- touch twin 2> twin.why || true
touch free
wait
outlast step same -- true
outlast step same -- touch changed 2> changed.why || true
outlast step temporary --input v1 -- sh -c 'echo a'
outlast step temporary --input v1 -- sh -c 'echo b'
"#;
    let shop = shop(script, "").await;
    let mut server = shop.serve().await;
    let (_, got) = run(&mut server).await;
    assert_eq!(printed(&got), "a\na\n", "{got}");
    for file in ["nested", "twin", "changed"] {
        assert!(!shop.file(file).exists(), "{file}");
    }
    let why = |name: &str| shop.text(&format!("{name}.why"));
    assert!(why("nested").contains("is inside of the step `outer`"), "{}", why("nested"));
    assert!(why("twin").contains("is running"), "{}", why("twin"));
    assert!(why("changed").contains("with another command"), "{}", why("changed"));
}

/// Runs `outlast step` with this socket.
fn step(socket: Option<&str>, script: &str) -> Output {
    let mut command = std::process::Command::new(binary());
    command.args(["step", "one", "--", "/bin/sh", "-c", script]).env_clear();
    command.env("PATH", "/usr/bin:/bin");
    if let Some(socket) = socket {
        command.env("OUTLAST_STEP_SOCKET", socket);
    }
    command.output().unwrap()
}

/// K12: outside of a job a step is refused, and without its worker it ends with 75.
#[test]
fn k12_a_step_needs_its_worker() {
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let touch = format!("touch {}", ran.display());
    let outside = step(None, &touch);
    let message = String::from_utf8_lossy(&outside.stderr).into_owned();
    assert_eq!(outside.status.code(), Some(2), "{message}");
    assert!(message.contains("steps = true"), "{message}");
    let socket = folder.path().join("socket");
    let missing = step(socket.to_str(), &touch);
    assert_eq!(missing.status.code(), Some(75), "{missing:?}");
    assert!(!ran.exists());
    // A worker that ends while the command of the step runs.
    let listener = UnixListener::bind(&socket).unwrap();
    let pid = folder.path().join("pid");
    let begun = pid.clone();
    let worker = std::thread::spawn(move || {
        use std::io::{BufRead as _, Write as _};
        let (stream, _) = listener.accept().unwrap();
        let mut stream = std::io::BufReader::new(stream);
        stream.read_line(&mut String::new()).unwrap();
        stream.get_mut().write_all(b"\"run\"\n").unwrap();
        while !std::fs::read_to_string(&begun).is_ok_and(|pid| pid.ends_with('\n')) {
            std::thread::yield_now();
        }
    });
    let left = step(socket.to_str(), &format!("echo $$ > {}; exec sleep 1000", pid.display()));
    worker.join().unwrap();
    assert_eq!(left.status.code(), Some(75), "{left:?}");
    assert_eq!(left.stdout, b"");
    let pid = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    let limit = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    while runs(pid) {
        assert!(tokio::time::Instant::now() < limit, "the command was not ended");
        std::thread::yield_now();
    }
}
