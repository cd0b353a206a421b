//! The log lines of a detached worker about its jobs, for the servers that inserted them (B15).
//!
//! The worker sends each line to the sockets of all servers on the store, with the job that it is about; a server
//! writes the lines about its jobs to its standard error (`own_jobs.rs`). So the worker keeps no state, and a worker
//! that continues a killed worker's job reaches the right server too. A thread sends the lines, so that no server can
//! delay the worker. The queue before it and the wait for each server are bounded, and a server is informed of the
//! number of lines that it missed.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use outlast_core::JobId;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use super::socket::SocketFolder;
use crate::config::LogFormat;
use crate::logging::json;

/// The number of lines that may wait to be sent.
const MAX_WAITING: usize = 1024;
/// The longest relayed line; the rest of a longer one is only in the worker's own log.
const MAX_LINE: usize = 16 * 1024;
/// The largest datagram: a line and its header.
pub(super) const MAX_DATAGRAM: usize = MAX_LINE + 256;
/// The time that a server may take to make room for a line. Afterwards it is not waited for until it has accepted one.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The prefixes of datagrams: with a line, and with the number of lost lines.
const LINE: &str = "log ";
const LOST: &str = "lost ";

/// The field that names the job of a line.
const JOB: &str = "job.id";

enum RelayItem {
    Datagram(Vec<u8>),
    /// Answered after everything before it was sent.
    Flush(SyncSender<()>),
}

/// Receives the lines, as the writer of a log layer.
#[derive(Clone)]
pub(crate) struct LogRelay {
    queue: SyncSender<RelayItem>,
    lost: Arc<AtomicU64>,
}

impl LogRelay {
    /// Starts the thread that sends to the servers with a socket in this folder.
    pub(crate) fn start(folder: SocketFolder) -> io::Result<Self> {
        let (queue, items) = sync_channel(MAX_WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(MAX_WAIT))?;
        let mut sender = Sender { folder, socket, behind: HashMap::new(), lost: lost.clone() };
        let thread = std::thread::Builder::new().name("log relay".to_owned());
        thread.spawn(move || sender.run(&items))?;
        Ok(Self { queue, lost })
    }

    /// Waits until the lines so far were sent, for a short time at most.
    pub(crate) fn flush(&self) {
        let (done, sent) = sync_channel(1);
        if self.queue.try_send(RelayItem::Flush(done)).is_ok() {
            let _ = sent.recv_timeout(MAX_WAIT);
        }
    }

    /// Returns true if an event is relayed: it concerns a job and matters to an operator.
    pub(crate) fn is_relayed(event: &tracing::Metadata<'_>) -> bool {
        event.is_event() && *event.level() <= Level::INFO && event.fields().field(JOB).is_some()
    }
}

impl io::Write for &LogRelay {
    fn write(&mut self, datagram: &[u8]) -> io::Result<usize> {
        if self.queue.try_send(RelayItem::Datagram(datagram.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(datagram.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogRelay {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// The thread that sends.
struct Sender {
    folder: SocketFolder,
    socket: UnixDatagram,
    /// The servers that did not accept a line in time, with the number of lines that they missed.
    behind: HashMap<String, u64>,
    /// Lines for which the queue had no room.
    lost: Arc<AtomicU64>,
}

impl Sender {
    fn run(&mut self, items: &Receiver<RelayItem>) {
        while let Ok(item) = items.recv() {
            match item {
                RelayItem::Datagram(datagram) => self.send_to_all(&datagram),
                RelayItem::Flush(done) => drop(done.try_send(())),
            }
        }
    }

    fn send_to_all(&mut self, datagram: &[u8]) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(lost, "failed to pass log lines on to servers: too many at once");
        }
        let fronts: Vec<String> = self.folder.front_names().collect();
        self.behind.retain(|front, _| fronts.contains(front));
        for front in fronts {
            self.send(front, datagram, lost);
        }
    }

    fn send(&mut self, front: String, datagram: &[u8], lost: u64) {
        let was_behind = self.behind.remove(&front);
        let missed = was_behind.unwrap_or(0) + lost;
        // A server that was not reading is not waited for again.
        if self.socket.set_nonblocking(was_behind.is_some()).is_err() {
            return;
        }
        let mut sent = Ok(());
        if missed > 0 {
            sent =
                self.folder.send_bytes(&self.socket, &front, format!("{LOST}{missed}").as_bytes());
        }
        let is_told = sent.is_ok();
        let sent = sent.and_then(|()| self.folder.send_bytes(&self.socket, &front, datagram));
        match sent {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if was_behind.is_none() {
                    tracing::warn!(front, "failed to pass a log line on: the server does not read");
                }
                self.behind.insert(front, if is_told { 1 } else { missed + 1 });
            }
            // A server that is gone gets no more lines.
            Ok(()) | Err(_) => {}
        }
    }
}

/// Writes an event as a datagram: its level, target and job, then the line as in the worker's log.
pub(crate) struct JobDatagrams {
    text: Format<Full, ()>,
    format: LogFormat,
}

impl JobDatagrams {
    pub(crate) fn new(format: LogFormat) -> Self {
        Self { text: Format::default().without_time().with_target(false), format }
    }
}

impl<S, N> FormatEvent<S, N> for JobDatagrams
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(job) = job_of(event) else { return Ok(()) };
        let mut line = String::new();
        match self.format {
            LogFormat::Text => {
                SystemTime.format_time(&mut Writer::new(&mut line))?;
                line.push(' ');
                self.text.format_event(context, Writer::new(&mut line), event)?;
                line.truncate(line.floor_char_boundary(MAX_LINE));
            }
            LogFormat::Json => line = json::line(event, MAX_LINE),
        }
        let (level, target) = (event.metadata().level(), event.metadata().target());
        write!(writer, "{LINE}{level} {target} {job}\n{}", line.trim_end())
    }
}

/// Returns the job that an event is about.
pub(super) fn job_of(event: &Event<'_>) -> Option<JobId> {
    let mut found = JobField(None);
    event.record(&mut found);
    found.0
}

struct JobField(Option<JobId>);

impl Visit for JobField {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == JOB {
            self.0 = format!("{value:?}").parse().ok();
        }
    }
}

/// A message that a server receives.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RelayedMessage<'a> {
    Line {
        level: Level,
        target: &'a str,
        job: JobId,
        line: &'a str,
    },
    /// The number of lines, of any server, that did not arrive.
    Lost(u64),
}

impl<'a> RelayedMessage<'a> {
    /// Parses a datagram; `None` for any other message.
    pub(super) fn parse(datagram: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(datagram).ok()?;
        if let Some(lost) = text.strip_prefix(LOST) {
            return lost.parse().ok().map(Self::Lost);
        }
        let (head, line) = text.strip_prefix(LINE)?.split_once('\n')?;
        let mut head = head.split(' ');
        let (level, target, job) = (head.next()?, head.next()?, head.next()?);
        Some(Self::Line { level: level.parse().ok()?, target, job: job.parse().ok()?, line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_messages_are_no_lines() {
        let id = "0190b0a0000040008000000000000001";
        let datagram = format!("log INFO outlast_engine::worker {id}\n2026 INFO Job dequeued");
        let Some(RelayedMessage::Line { level, target, job, line }) =
            RelayedMessage::parse(datagram.as_bytes())
        else {
            panic!("{datagram}")
        };
        assert_eq!((level, target), (Level::INFO, "outlast_engine::worker"));
        assert_eq!((job.to_string().as_str(), line), (id, "2026 INFO Job dequeued"));
        assert_eq!(RelayedMessage::parse(b"lost 3"), Some(RelayedMessage::Lost(3)));
        for other in [&b"look"[..], b"log ", b"log INFO x y\nz", b"lost", b"lost x", &[0xff]] {
            assert_eq!(RelayedMessage::parse(other), None, "{other:?}");
        }
    }
}
