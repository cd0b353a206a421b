//! A disk for one test: a tmpfs in a mount namespace, which needs root or the right to make user namespaces and
//! disappears with the test, however it ends.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set for the test that runs inside.
const INSIDE: &str = "OUTLAST_TEST_HAS_OWN_MOUNTS";

/// Runs `body` with the right to mount: the test named `test` starts itself again in a new namespace. A machine that
/// allows neither way fails the test.
pub(crate) fn with_own_mounts<F: Future<Output = ()>>(test: &str, body: impl FnOnce() -> F) {
    #[expect(clippy::disallowed_methods, reason = "set by this very function")]
    let inside = std::env::var_os(INSIDE).is_some();
    if inside {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(body());
    }
    let may_mount = |flags: &&str| {
        let probe = ["--propagation", "private", "mount", "-t", "tmpfs", "none", "/mnt"];
        Command::new("unshare")
            .arg(flags)
            .args(probe)
            .output()
            .is_ok_and(|ran| ran.status.success())
    };
    let flags = ["-m", "-Urm"].into_iter().find(may_mount).expect(
        "this test needs a small disk: run it as root, or allow user namespaces (`unshare -Urm` must work)",
    );
    let ran = Command::new("unshare")
        .arg(flags)
        .args(["--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = [ran.stdout, ran.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(ran.status.success(), "{}", said.join("\n"));
    assert!(said[0].contains("1 passed"), "no test is called {test}: {}", said[0]);
}

/// A small disk; unmounted when dropped.
pub(crate) struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// Mounts a disk of this many KiB at `at`.
    pub(crate) fn mount(at: &Path, kib: u32) -> Self {
        std::fs::create_dir_all(at).unwrap();
        mount(&["-t", "tmpfs", "-o", &format!("mode=0700,size={kib}k"), "none"], at);
        Self { at: at.to_owned() }
    }

    /// Fills it to the last byte.
    pub(crate) fn fill(&self) {
        let mut ballast = std::fs::File::create(self.ballast()).unwrap();
        while ballast.write_all(&[7; 4096]).is_ok() {}
    }

    /// Frees the space again.
    pub(crate) fn empty(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }

    /// Makes the disk read-only; no process may have a file open for writing.
    pub(crate) fn make_read_only(&self) {
        mount(&["-o", "remount,bind,ro"], &self.at);
    }

    fn ballast(&self) -> PathBuf {
        self.at.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a server under test may still have files open here. If it fails, the end of the namespace unmounts
        // it.
        drop(Command::new("umount").arg("-l").arg(&self.at).status());
    }
}

fn mount(arguments: &[&str], at: &Path) {
    let ran = Command::new("mount").args(arguments).arg(at).output().unwrap();
    assert!(ran.status.success(), "mount {arguments:?}: {ran:?}");
}
