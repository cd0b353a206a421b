//! The binary on a terminal of a given width.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_testkit::mcp_process::{Signal, signal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{World, binary, eventually};

/// A command on a terminal.
pub(super) struct Terminal {
    columns: usize,
    child: Child,
    keyboard: File,
    seen: Arc<Mutex<Vec<u8>>>,
    closed: Arc<AtomicBool>,
    reader: std::thread::JoinHandle<()>,
}

impl Terminal {
    /// Starts it.
    pub(super) fn run(world: &World, columns: u16, arguments: &[&str]) -> Self {
        Self::of(Command::new(binary()), world, columns, arguments)
    }

    /// Starts it as the leader of a session on the terminal, which is notified of the terminal's end.
    pub(super) fn leading(world: &World, columns: u16, arguments: &[&str]) -> Self {
        let mut setsid = Command::new("setsid");
        setsid.arg("--ctty").arg(binary());
        Self::of(setsid, world, columns, arguments)
    }

    fn of(mut command: Command, world: &World, columns: u16, arguments: &[&str]) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        tcsetwinsize(&slave, size).unwrap();
        let same = || Stdio::from(slave.try_clone().unwrap());
        let child = command
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
        let closed = Arc::new(AtomicBool::new(false));
        let closes = Arc::clone(&closed);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The end of a terminal is an error on Linux.
            while let Ok(read @ 1..) = screen.read(&mut buffer) {
                shown.lock().unwrap().extend_from_slice(&buffer[..read]);
                if closes.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        Self { columns: usize::from(columns), child, keyboard, seen, closed, reader }
    }

    /// Returns the whole output so far.
    pub(super) fn screen(&self) -> String {
        let bytes = self.seen.lock().unwrap().clone();
        String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
    }

    /// Returns the lines that a person sees now.
    pub(super) fn painted(&self) -> Vec<String> {
        painted(&self.screen(), self.columns)
    }

    /// Waits until this text appears.
    pub(super) async fn shows(&self, text: &str) {
        eventually(text, || self.screen().contains(text)).await;
    }

    pub(super) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    pub(super) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    pub(super) fn signal(&self, sent: Signal) {
        signal(self.child.id(), sent);
    }

    /// Closes the terminal's other end during output, and waits for the command's end.
    pub(super) async fn hang_up(self) -> ExitStatus {
        let Self { mut child, keyboard, closed, reader, .. } = self;
        closed.store(true, Ordering::SeqCst);
        let waiting = tokio::task::spawn_blocking(move || {
            reader.join().unwrap();
            drop(keyboard);
            child.wait().unwrap()
        });
        tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap().unwrap()
    }

    /// Waits for the end; returns the whole output.
    pub(super) async fn ended(self) -> (Option<i32>, String) {
        let Self { mut child, keyboard, seen, reader, .. } = self;
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

/// Returns the lines that a terminal of this width shows for this output, without blanks at their ends.
pub(super) fn painted(text: &str, columns: usize) -> Vec<String> {
    let (mut lines, mut row, mut column) = (vec![Vec::new()], 0_usize, 0_usize);
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '\r' => column = 0,
            '\n' => (row, column) = (row + 1, 0),
            '\x1b' => {
                let mut number = String::new();
                let direction = rest.by_ref().find(|letter| {
                    number.extend(letter.is_ascii_digit().then_some(*letter));
                    letter.is_ascii_alphabetic()
                });
                let number = number.parse().unwrap_or(1);
                match direction {
                    Some('A') => row = row.saturating_sub(number),
                    Some('B') => row += number,
                    Some('C') => column += number,
                    Some('D') => column = column.saturating_sub(number),
                    Some('K') => lines[row] = Vec::new(),
                    // Colour, or a sequence that is not complete yet.
                    _ => {}
                }
            }
            letter => {
                if column == columns {
                    (row, column) = (row + 1, 0);
                }
                lines.resize(lines.len().max(row + 1), Vec::new());
                let line: &mut Vec<char> = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = letter;
                column += 1;
            }
        }
        lines.resize(lines.len().max(row + 1), Vec::new());
    }
    lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned()).collect()
}
