//! The calls to the operating system that need unsafe code. Every other crate of the workspace forbids it.
//!
//! A program calls these functions at the very beginning of its `main`.

use std::ffi::c_int;
use std::io;

use rusqlite::ffi;

/// The variable that makes [`leave_starter`] leave. It is set by a process that starts one to outlive it.
pub const STARTED_DETACHED: &str = "OUTLAST_STARTED_DETACHED";

/// The highest number of open files to close one by one.
const MAX_FILES: libc::c_int = 65_536;

/// Leaves the process that started this one, if [`STARTED_DETACHED`] is set.
///
/// A worker that outlives its client must hold nothing of the client open: a client that waits for the end of a pipe
/// would wait for the worker. No signal to the client's process group or terminal may reach it. It must not be a
/// descendant of the server that started it, because some clients kill every process below the server. So this process
/// exits and its child goes on: in a new session, with no inherited file but the standard ones, and without the variable.
///
/// # Errors
///
/// Fails if this process has more than one thread; nothing has changed then.
pub fn leave_starter() -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "read before there is any configuration")]
    if std::env::var_os(STARTED_DETACHED).is_none() {
        return Ok(());
    }
    if !has_one_thread() {
        return Err(io::Error::other("only a process with one thread can leave its starter"));
    }
    // SAFETY: no other thread reads or writes the environment, because there is none.
    unsafe { std::env::remove_var(STARTED_DETACHED) };
    // The child of a process that has exited belongs to init, or to the nearest subreaper, which also reaps it. A starter
    // that is init itself would get it back, and may not expect to reap it: then this process goes on itself. It also does
    // so if there can be no child, and is only less protected.
    if std::os::unix::process::parent_id() != 1 && fork() == Fork::Parent {
        std::process::exit(0);
    }
    // SAFETY: it takes no argument. It fails only if this process leads a group, and then it has left its starter's.
    unsafe { libc::setsid() };
    // SAFETY: this process has one thread and has just begun, so no part of it owns a file above standard error: all of
    // them were inherited.
    unsafe { close_from(3) };
    Ok(())
}

/// Returns true if no second thread is seen.
fn has_one_thread() -> bool {
    // Only Linux lists them. Elsewhere the place of the call, the beginning of `main`, has to do.
    std::fs::read_dir("/proc/self/task").map_or(true, |tasks| tasks.count() == 1)
}

#[derive(PartialEq)]
enum Fork {
    Parent,
    Child,
    Failed,
}

/// Copies this process, which has one thread.
fn fork() -> Fork {
    // SAFETY: with one thread, no lock can be held by a thread that is missing in the child.
    match unsafe { libc::fork() } {
        -1 => Fork::Failed,
        0 => Fork::Child,
        _ => Fork::Parent,
    }
}

/// Closes every open file from this number on.
///
/// # Safety
///
/// Nothing in this process owns one of these files.
unsafe fn close_from(first: libc::c_int) {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the caller's promise. By its number, because not every C library has the function.
        let closed =
            unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0_u32) };
        if closed == 0 {
            return;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { close_each_from(first) };
}

/// Closes every open file from this number on, one by one.
///
/// # Safety
///
/// Nothing in this process owns one of these files.
unsafe fn close_each_from(first: libc::c_int) {
    // SAFETY: it only reads a limit.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    let end = libc::c_int::try_from(limit).ok().filter(|end| (0..MAX_FILES).contains(end));
    for file in first..end.unwrap_or(MAX_FILES) {
        // SAFETY: the caller's promise. A number without a file is an error without effect.
        unsafe { libc::close(file) };
    }
}

/// Makes the allocator return large blocks to the system when they are freed.
///
/// By itself glibc's allocator serves large blocks from the heap once one of them was freed, and keeps what they leave
/// there: a server that handled one long report would stay several reports larger. With a fixed threshold each large
/// block is mapped and returned alone. Other allocators do not need it.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const THRESHOLD: libc::c_int = 128 * 1024;
        // SAFETY: any value is allowed for this parameter, and glibc locks its own state.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, THRESHOLD) };
    }
}

/// Makes SQLite count no allocations, each of which would take a lock for figures that nobody reads.
///
/// The compile option of `.cargo/config.toml` does the same, but `cargo install --git` does not read that file. Has no
/// effect once a database was opened.
pub fn count_no_sqlite_memory() {
    configure_sqlite_memory_counts(0);
}

fn configure_sqlite_memory_counts(counts: c_int) {
    // SAFETY: the option takes one int. SQLite refuses the call, without an effect, once it is in use.
    unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, counts) };
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsRawFd as _, IntoRawFd as _};

    use super::*;

    /// Above every file that the test runner opens.
    const HIGH: libc::c_int = 700;

    fn is_open(file: libc::c_int) -> bool {
        // SAFETY: it reads the flags of a number.
        unsafe { libc::fcntl(file, libc::F_GETFD) != -1 }
    }

    /// The only test of this program that uses SQLite, whose configuration is global.
    #[test]
    fn sqlite_counts_no_allocations() {
        configure_sqlite_memory_counts(1);
        count_no_sqlite_memory();
        let database = rusqlite::Connection::open_in_memory().unwrap();
        database.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
        // SAFETY: it reads a counter.
        assert_eq!(unsafe { ffi::sqlite3_memory_used() }, 0);
    }

    /// N4: with the call of Linux and without it.
    #[test]
    fn n4_files_from_a_number_on_are_closed_and_others_are_not() {
        let file = File::open("/dev/null").unwrap();
        for close in [close_from, close_each_from] {
            let high = rustix::io::fcntl_dupfd_cloexec(&file, HIGH).unwrap().into_raw_fd();
            assert!(high >= HIGH && is_open(high));
            // SAFETY: this test alone opens files of such numbers, and has given up the ownership.
            unsafe { close(HIGH) };
            assert!(!is_open(high) && is_open(file.as_raw_fd()));
        }
    }

    #[test]
    fn a_process_that_was_not_asked_to_leave_stays() {
        let before = std::process::id();
        leave_starter().unwrap();
        assert_eq!(std::process::id(), before);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_second_thread_is_seen() {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || released.recv().is_err());
        assert!(!has_one_thread());
        drop(release);
        assert!(thread.join().unwrap());
    }

    #[test]
    fn memory_can_be_used_after_the_threshold_is_set() {
        return_large_blocks();
        let block = vec![7_u8; 1 << 20];
        assert_eq!(block.iter().filter(|byte| **byte == 7).count(), 1 << 20);
    }
}
