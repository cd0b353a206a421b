//! The wrapped server as a process: its pipes, its process group and its end.

use std::future::pending;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Interest};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::timeout;

use crate::frame::{MAX_BATCH, is_hung_up};
use crate::host::{HostEvent, ServerCommand};
use crate::line::{MAX_LINE, read_line};
use crate::web;

/// The time that a server may take to exit after its input was closed, and again after SIGTERM.
pub(crate) const EXIT_GRACE: Duration = Duration::from_secs(2);
/// The time for which the output of an exited server is still read: one of its children may hold the pipe.
const LAST_OUTPUT: Duration = Duration::from_millis(500);
/// The time for which a server that has closed its input may still answer the calls that it has read.
const CLOSED_INPUT: Duration = Duration::from_secs(10);
/// The interval of the checks that a process group is empty.
const GROUP_LOOK: Duration = Duration::from_millis(20);
/// The reader of one side waits while this number of bytes waits for the other side.
const MAX_BACKLOG: usize = 8 * 1024 * 1024;

/// Bytes that wait to be written.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    bytes: AtomicUsize,
    fell: Notify,
}

impl Backlog {
    pub(crate) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.fell.notify_waiters();
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= MAX_BACKLOG
    }

    /// Waits until the backlog has room.
    pub(crate) async fn room(&self) {
        loop {
            let fell = self.fell.notified();
            tokio::pin!(fell);
            fell.as_mut().enable();
            if !self.is_full() {
                return;
            }
            fell.await;
        }
    }
}

/// A running server.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    /// The number of this server among those that the host process has started.
    pub(crate) generation: u64,
    pub(crate) input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    pub(crate) backlog: Arc<Backlog>,
    /// The process group; `None` for a server at an address.
    pub(crate) group: Option<Pid>,
    pub(crate) exited: watch::Receiver<bool>,
}

impl ServerProcess {
    /// Starts the server; its output and its exit become events.
    pub(crate) fn start(
        command: &ServerCommand,
        generation: u64,
        events: &mpsc::Sender<HostEvent>,
        to_client: Arc<Backlog>,
        backlog: Arc<Backlog>,
    ) -> io::Result<Self> {
        if let Some(endpoint) = &command.endpoint {
            return web::start(endpoint, generation, events, to_client, backlog);
        }
        let mut process = Command::new(&command.program)
            .args(&command.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let pid = process.id();
        if let Some(pid) = pid {
            (command.watch)(pid);
        }
        let group = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let (input, lines) = mpsc::unbounded_channel();
        let (closes, mut closed) = mpsc::unbounded_channel();
        if let Some(stdin) = process.stdin.take() {
            outlast_engine::spawn(write_lines(stdin, lines, backlog.clone(), closes.clone()));
        }
        let (exits, exited) = watch::channel(false);
        let (heard, ends, room) = (events.clone(), exited.clone(), to_client.clone());
        let stderr = process.stderr.take();
        let stderr = stderr.map(|pipe| outlast_engine::spawn(read_stderr(pipe, ends, heard, room)));
        let (heard, ends) = (events.clone(), exited.clone());
        let stdout = process.stdout.take().map(|pipe| {
            outlast_engine::spawn(async move {
                read_lines(pipe, ends, generation, heard, to_client).await;
                // Fails only when the server has exited.
                let _ = closes.send("closed its output");
            })
        });
        let (events, command) = (events.clone(), command.clone());
        outlast_engine::spawn(async move {
            let status = tokio::select! {
                status = process.wait() => status,
                Some(what) = closed.recv() => match timeout(EXIT_GRACE, process.wait()).await {
                    Ok(status) => status,
                    Err(_) => {
                        drop(events.send(HostEvent::ServerClosedPipe(generation, what)).await);
                        end_process(&mut process, group).await
                    }
                },
            };
            let _ = exits.send(true);
            for reader in [stdout, stderr].into_iter().flatten() {
                drop(reader.await);
            }
            let code = status.map_or(1, exit_code);
            drop(events.send(HostEvent::ServerExited(generation, code)).await);
            // If this process exits before that is done, the guard does it.
            if let Some(group) = group {
                end_group(group).await;
            }
            if let Some(pid) = pid {
                (command.release)(pid);
            }
        });
        Ok(Self { generation, input: Some(input), backlog, group, exited })
    }

    /// Sends a line; a server whose input is closed gets none.
    pub(crate) fn send(&self, line: Vec<u8>) {
        if let Some(input) = &self.input {
            self.backlog.add(line.len());
            let _ = input.send(line);
        }
    }

    /// Closes the input; lines that were sent before are still written.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    pub(crate) fn is_gone(&self) -> bool {
        *self.exited.borrow()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.input.is_none()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // Fails only when the group is already gone.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Ends a process that does not exit by itself.
async fn end_process(process: &mut Child, group: Option<Pid>) -> io::Result<ExitStatus> {
    for signal in [Signal::TERM, Signal::KILL] {
        if let Some(group) = group {
            // Fails only when the group is already gone.
            let _ = kill_process_group(group, signal);
        }
        if let Ok(status) = timeout(EXIT_GRACE, process.wait()).await {
            return status;
        }
    }
    process.wait().await
}

/// Ends the processes that a server has left in its group.
async fn end_group(group: Pid) {
    for signal in [Signal::TERM, Signal::KILL] {
        if test_kill_process_group(group).is_err() || kill_process_group(group, signal).is_err() {
            return;
        }
        let is_empty = async {
            while test_kill_process_group(group).is_ok() {
                tokio::time::sleep(GROUP_LOOK).await;
            }
        };
        if timeout(EXIT_GRACE, is_empty).await.is_ok() {
            return;
        }
    }
}

async fn write_lines(
    mut stdin: ChildStdin,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
    backlog: Arc<Backlog>,
    closes: mpsc::UnboundedSender<&'static str>,
) {
    let mut closed = pin!(closed_for_long(stdin.as_fd().try_clone_to_owned()));
    loop {
        let next = tokio::select! {
            next = lines.recv() => next,
            () = &mut closed => {
                discard_lines(&closes, &mut lines, &backlog).await;
                None
            }
        };
        let Some(mut batch) = next else { break };
        // Lines that wait at the same time are written at once.
        while batch.len() < MAX_BATCH
            && let Ok(line) = lines.try_recv()
        {
            batch.extend_from_slice(&line);
        }
        let written = stdin.write_all(&batch).await;
        backlog.remove(batch.len());
        if written.is_err() {
            discard_lines(&closes, &mut lines, &backlog).await;
            break;
        }
    }
    drop(stdin.flush().await);
}

/// Waits until the other end of a pipe has been closed for [`CLOSED_INPUT`].
async fn closed_for_long(pipe: io::Result<OwnedFd>) {
    let Ok(pipe) = pipe.and_then(pipe::Sender::from_owned_fd) else { return pending().await };
    while !is_hung_up(&pipe) {
        // Fails only when the runtime shuts down.
        drop(pipe.ready(Interest::ERROR).await);
        tokio::time::sleep(GROUP_LOOK).await;
    }
    tokio::time::sleep(CLOSED_INPUT).await;
}

/// Reports that the server has closed its input, and discards what is still sent to it. Its remaining output is still read.
async fn discard_lines(
    closes: &mpsc::UnboundedSender<&'static str>,
    lines: &mut mpsc::UnboundedReceiver<Vec<u8>>,
    backlog: &Backlog,
) {
    let _ = closes.send("closed its input");
    while let Some(line) = lines.recv().await {
        backlog.remove(line.len());
    }
}
/// Returns the number of bytes read; zero at the end, or if the server has exited and nothing more comes.
async fn until_silent(
    exited: &mut watch::Receiver<bool>,
    reading: impl Future<Output = io::Result<usize>>,
) -> usize {
    let silent = async {
        drop(exited.wait_for(|exited| *exited).await);
        tokio::time::sleep(LAST_OUTPUT).await;
    };
    tokio::select! {
        read = reading => read.unwrap_or(0),
        () = silent => 0,
    }
}

async fn read_lines(
    pipe: impl AsyncRead + Unpin,
    mut exited: watch::Receiver<bool>,
    generation: u64,
    events: mpsc::Sender<HostEvent>,
    to_client: Arc<Backlog>,
) {
    let mut pipe = BufReader::with_capacity(64 * 1024, pipe);
    loop {
        to_client.room().await;
        let mut line = Vec::new();
        until_silent(&mut exited, read_line(&mut pipe, &mut line)).await;
        if line.len() > MAX_LINE {
            drop(events.send(HostEvent::ServerLineTooLong(generation)).await);
            return;
        }
        // An incomplete line is the last one.
        let is_last = !line.ends_with(b"\n");
        if line.is_empty() || !pass_line(&events, &to_client, generation, line).await || is_last {
            return;
        }
    }
}

/// Sends a line of the server to the host process, which removes it from the backlog. Returns false if the host process
/// is gone.
pub(crate) async fn pass_line(
    events: &mpsc::Sender<HostEvent>,
    to_client: &Backlog,
    generation: u64,
    line: Vec<u8>,
) -> bool {
    to_client.add(line.len());
    events.send(HostEvent::ServerLine(generation, line)).await.is_ok()
}

async fn read_stderr(
    mut pipe: impl AsyncRead + Unpin,
    mut exited: watch::Receiver<bool>,
    events: mpsc::Sender<HostEvent>,
    to_client: Arc<Backlog>,
) {
    let mut piece = vec![0; 16 * 1024];
    loop {
        // A client that does not read standard error delays the server, as it would without wrap.
        to_client.room().await;
        let read = until_silent(&mut exited, pipe.read(&mut piece)).await;
        let bytes = piece.get(..read).unwrap_or_default().to_vec();
        if read == 0 || events.send(HostEvent::ServerStderr(bytes)).await.is_err() {
            return;
        }
    }
}

/// Returns the exit code as a shell would show it.
fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}
