//! The calls that only Linux has, and what takes their place elsewhere.
//!
//! Every function has a portable form. Linux uses it too if [`SWITCH`] is set, so that a test can show that the program works
//! without the calls. Calls that need unsafe code are in `outlast-sys`.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

mod file_reports;

pub use file_reports::FileReports;

/// The variable that switches the calls off if it is set. For tests.
pub const SWITCH: &str = "OUTLAST_PORTABLE";

/// Returns true if the calls can be used.
fn is_fast() -> bool {
    static FAST: OnceLock<bool> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "a switch for tests, which is no setting")]
    *FAST.get_or_init(|| cfg!(target_os = "linux") && std::env::var_os(SWITCH).is_none())
}

/// Returns the path of this program. On Linux it leads to the program even after its file was replaced by a newer one.
///
/// # Errors
///
/// Fails if the file cannot be found.
pub fn own_program() -> io::Result<PathBuf> {
    if is_fast() { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

/// Returns the start of a process, in ticks since the boot; `None` if there is no such process, or it cannot be known.
pub fn process_start(pid: i32) -> Option<u64> {
    if !is_fast() {
        return None;
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in the second field may hold anything, a bracket included.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// Returns the identifier of the machine's present boot; empty if it cannot be known.
pub fn boot_id() -> Vec<u8> {
    if is_fast() {
        fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
    } else {
        Vec::new()
    }
}

/// Returns true if this process was started with this signal ignored; false if it cannot be known.
pub fn is_signal_ignored(signal: i32) -> bool {
    if !is_fast() {
        return false;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=64).contains(&signal) && mask & (1 << (signal - 1)) != 0
}

/// The longest path that a socket can have on every system.
const MAX_SOCKET_PATH: usize = 100;

/// Uses the path of a socket. On Linux a path that is too long is replaced by a shorter one through its open folder;
/// elsewhere `operate` fails for it.
///
/// # Errors
///
/// Fails if `operate` does, or the folder cannot be opened.
pub fn with_socket_path<T>(
    path: &Path,
    operate: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return operate(path);
    };
    if path.as_os_str().len() <= MAX_SOCKET_PATH || !is_fast() {
        return operate(path);
    }
    let folder = File::open(folder)?;
    operate(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

/// Makes the system kill this process when the one that started it dies. Elsewhere nothing happens.
///
/// # Errors
///
/// Fails if the system refuses it.
pub fn die_with_starter() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if is_fast() {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_has_a_start_and_a_machine_a_boot() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(process_start(me).unwrap() > 0);
        assert_eq!(process_start(i32::MAX), None);
        assert!(!boot_id().is_empty());
        assert!(fs::metadata(own_program().unwrap()).unwrap().len() > 0);
    }

    #[test]
    fn a_signal_that_does_not_exist_is_not_ignored() {
        assert!(!is_signal_ignored(0) && !is_signal_ignored(65) && !is_signal_ignored(-1));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_may_have_a_long_path() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("f".repeat(200));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("a.sock");
        let bound = with_socket_path(&path, |short| std::os::unix::net::UnixListener::bind(short));
        assert!(bound.is_ok() && path.exists());
    }
}
