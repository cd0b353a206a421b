//! A primary and its standby, in a temporary folder, on sockets.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A primary, its standby, and an address that finds the one that accepts writes.
pub(crate) struct Pair {
    folder: TempDir,
    pub(crate) url: String,
}

impl Pair {
    pub(crate) async fn start(synchronous: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pair = Self { url: url(folder.path()), folder };
        if rustix::process::geteuid().is_root() {
            run(Command::new("chown").arg("nobody").arg(pair.folder.path()));
        }
        for name in ["one", "two"] {
            run(as_user(pair.folder.path(), "mkdir").arg(pair.at(name)));
        }
        let initdb =
            ["-U", "outlast", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
        run(pair.program("initdb").arg("-D").arg(pair.at("primary")).args(initdb));
        pair.start_server("primary", "one");
        let mut copy = pair.program("pg_basebackup");
        copy.arg("-h").arg(pair.at("one")).args(["-U", "outlast", "-R", "-c", "fast", "-D"]);
        run(copy.arg(pair.at("standby")));
        pair.start_server("standby", "two");
        let streams = "select count(*) from pg_stat_replication where state = 'streaming'";
        while pair.sql(streams).trim() != "1" {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        if synchronous {
            pair.sql("alter system set synchronous_standby_names = '*'");
            pair.sql("select pg_reload_conf()");
            while pair.sql("select sync_state from pg_stat_replication").trim() != "sync" {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
        pair
    }

    /// Stops the process of the primary that sends changes to the standby.
    pub(crate) fn hold_replication_back(&self) {
        let sender = self.sql("select pid from pg_stat_replication");
        run(Command::new("kill").arg("-STOP").arg(sender.trim()));
    }

    /// Kills every process of the primary at once.
    pub(crate) fn kill_primary(&self) {
        let file = std::fs::read_to_string(self.at("primary/postmaster.pid")).unwrap();
        let postmaster = file.lines().next().unwrap();
        run(Command::new("kill").args(["-STOP", postmaster]));
        run(Command::new("pkill").args(["-KILL", "-P", postmaster]));
        run(Command::new("kill").args(["-KILL", postmaster]));
    }

    pub(crate) fn promote_standby(&self) {
        run(self.program("pg_ctl").arg("-D").arg(self.at("standby")).args(["-w", "promote"]));
        // No standby is left that could confirm a commit.
        let mut sql = self.program("psql");
        sql.arg("-h").arg(self.at("two")).args(["-U", "outlast", "-Atq", "postgres"]);
        sql.args(["-c", "alter system reset synchronous_standby_names"]);
        run(sql.args(["-c", "select pg_reload_conf()"]));
    }

    fn start_server(&self, data: &str, socket: &str) {
        let sockets = self.at(socket);
        let options =
            format!("-c listen_addresses='' -c unix_socket_directories={}", sockets.display());
        let mut start = self.program("pg_ctl");
        start.arg("-D").arg(self.at(data)).arg("-l").arg(self.at(&format!("{data}.log")));
        run(start.args(["-w", "start", "-o", &options]));
    }

    /// Runs a query on the primary.
    fn sql(&self, statement: &str) -> String {
        let mut sql = self.program("psql");
        sql.arg("-h")
            .arg(self.at("one"))
            .args(["-U", "outlast", "-Atq", "postgres", "-c", statement]);
        let output = sql.stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str) -> Command {
        as_user(self.folder.path(), name)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for data in ["primary", "standby"] {
            let mut stop = self.program("pg_ctl");
            stop.arg("-D").arg(self.at(data)).args(["-m", "immediate", "stop"]);
            // One of them is already dead.
            let _ = stop.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}

fn url(folder: &Path) -> String {
    let socket = |name: &str| folder.join(name).display().to_string().replace('/', "%2F");
    format!(
        "postgres://outlast@{},{}/postgres?target_session_attrs=read-write",
        socket("one"),
        socket("two")
    )
}

/// Returns a program that runs as an ordinary user, as PostgreSQL requires.
fn as_user(folder: &Path, program: &str) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups", program]);
    command.env("HOME", folder).current_dir(folder);
    command
}

fn run(command: &mut Command) {
    let done = command.stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}
