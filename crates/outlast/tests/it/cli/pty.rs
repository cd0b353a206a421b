//! The binary on a terminal of a given width.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_testkit::mcp_process::{Signal, signal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{World, binary, eventually};

/// A command on a terminal.
pub(super) struct Terminal {
    child: Child,
    keyboard: File,
    seen: Arc<Mutex<Vec<u8>>>,
    reader: std::thread::JoinHandle<()>,
}

impl Terminal {
    /// Starts it.
    pub(super) fn run(world: &World, columns: u16, arguments: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        tcsetwinsize(&slave, size).unwrap();
        let same = || Stdio::from(slave.try_clone().unwrap());
        let child = Command::new(binary())
            .args(arguments)
            .env_clear()
            .env("TERM", "xterm-256color")
            .envs(world.environment.iter().cloned())
            .stdin(same())
            .stdout(same())
            .stderr(same())
            .spawn()
            .unwrap();
        drop(slave);
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shown = Arc::clone(&seen);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The end of a terminal is an error on Linux.
            while let Ok(read @ 1..) = screen.read(&mut buffer) {
                shown.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        Self { child, keyboard, seen, reader }
    }

    /// Everything on it so far.
    pub(super) fn screen(&self) -> String {
        let bytes = self.seen.lock().unwrap().clone();
        String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
    }

    /// Waits until this is on it.
    pub(super) async fn shows(&self, text: &str) {
        eventually(text, || self.screen().contains(text)).await;
    }

    pub(super) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    pub(super) fn interrupt(&self) {
        signal(self.child.id(), Signal::INT);
    }

    /// Waits for the end; everything that was on it.
    pub(super) async fn ended(self) -> (Option<i32>, String) {
        let Self { mut child, keyboard, seen, reader } = self;
        let waiting = tokio::task::spawn_blocking(move || {
            let status: ExitStatus = child.wait().unwrap();
            reader.join().unwrap();
            drop(keyboard);
            status.code()
        });
        let code = tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap().unwrap();
        let bytes = seen.lock().unwrap().clone();
        (code, String::from_utf8_lossy(&bytes).replace("\r\n", "\n"))
    }
}
