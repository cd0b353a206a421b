//! Follows a remote run to its end, for every vendor: by its event stream while there is one, otherwise by checks at growing
//! intervals (A5). A vendor gives what differs: how to look at a run, how to open its stream, and what an event means.

use async_trait::async_trait;
use outlast_core::{BoxError, ProviderError, RemoteRun, Run, Step};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until};

use super::{Checks, EventStream, HttpAnswer, Milestones, Service};

/// One vendor's half of following a run.
#[async_trait]
pub(crate) trait VendorRun: Send + 'static {
    /// An event of its stream.
    type Event: Send;

    /// Reads an event from a frame's data; `None` for keep-alives and anything else that is not an event.
    fn parse(data: &mut String) -> Option<Self::Event>;

    /// Handles an event of the stream.
    fn hear(
        &mut self,
        link: &mut RunLink,
        event: Self::Event,
    ) -> Result<Option<Step>, ProviderError>;

    /// Handles the end of the stream, which is closed already; by default the next check stays due when it is.
    fn stream_ended(&mut self, _link: &mut RunLink) {}

    /// Looks at the run once, opens its stream if it has one, and sets when the next check is due.
    async fn check(&mut self, link: &mut RunLink) -> Result<Option<Step>, ProviderError>;

    /// The text that the run has written so far.
    fn text(&self) -> Option<String> {
        None
    }

    /// The milestones that were reported.
    fn milestones(&mut self) -> &mut Milestones;
}

/// The connection to a run: its stream, if one is open, and its checks.
pub(crate) struct RunLink {
    pub(crate) service: Service,
    pub(crate) remote: RemoteRun,
    pub(crate) checks: Checks,
    stream: Option<EventStream>,
    /// False once the provider refused a stream, or its streams are of no further use.
    streams: bool,
    /// The time of the next check; `None` while the stream alone is followed. Kept here, not in a future, so that a dropped
    /// `next` loses no time.
    pub(crate) check_at: Option<Instant>,
}

impl RunLink {
    /// A run whose first check is due at once.
    pub(crate) fn new(service: Service, remote: RemoteRun) -> Self {
        let checks = Checks::after(service.waits(), 0);
        let check_at = Some(Instant::now());
        Self { service, remote, checks, stream: None, streams: true, check_at }
    }

    /// Asks for the stream of the run with `attaching`, unless the provider has refused one before.
    pub(crate) async fn attach(
        &mut self,
        attaching: impl Future<Output = Result<Option<EventStream>, ProviderError>>,
    ) -> Option<EventStream> {
        if !self.streams {
            return None;
        }
        match attaching.await {
            Ok(stream) => {
                self.streams = stream.is_some();
                stream
            }
            Err(error) => {
                let id = self.remote.short_id();
                tracing::debug!(remote.id = id, %error, "failed to open the stream; will try again");
                None
            }
        }
    }

    /// Follows this stream; a check is due at `check_at` all the same.
    pub(crate) fn follow(&mut self, stream: EventStream, check_at: Option<Instant>) {
        self.stream = Some(stream);
        self.check_at = check_at;
    }

    pub(crate) fn close_stream(&mut self) {
        self.stream = None;
    }

    /// Opens no further stream.
    pub(crate) fn stop_streaming(&mut self) {
        self.streams = false;
    }

    pub(crate) fn has_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Returns true unless no stream is asked for any more.
    pub(crate) fn may_stream(&self) -> bool {
        self.streams
    }

    /// Closes the stream and checks at once.
    pub(crate) fn check_at_once(&mut self) {
        self.close_stream();
        self.check_at(Instant::now());
    }

    /// Sets the next check one wait further in the series.
    pub(crate) fn check_later(&mut self) {
        self.check_at = Some(self.checks.next());
    }

    /// Sets the next check.
    pub(crate) fn check_at(&mut self, at: Instant) {
        self.check_at = Some(at);
    }

    /// Reads the state that a check was answered with, and its body; `None` when the run must be checked again, which is
    /// planned then.
    pub(crate) fn read<T: DeserializeOwned>(
        &mut self,
        answer: Result<HttpAnswer, ProviderError>,
        to_error: impl Fn(&Service, &HttpAnswer) -> ProviderError,
        id: impl Fn(&T) -> Option<&str>,
    ) -> Result<Option<(T, Vec<u8>)>, ProviderError> {
        let to_error = |answer: &HttpAnswer| to_error(&self.service, answer);
        let read = self.checks.read_object::<T>(&self.remote, answer, to_error)?;
        match &read {
            Some((state, _)) => self.checks.check_id(&self.remote, id(state)),
            None => self.check_later(),
        }
        Ok(read)
    }

    /// Waits for an event of the stream or the time of the next check. Cancel-safe.
    async fn next<E>(&mut self, parse: fn(&mut String) -> Option<E>) -> Next<E> {
        let (stream, check_at) = (&mut self.stream, self.check_at);
        let event = async {
            match stream {
                Some(stream) => stream.next(parse).await,
                None => std::future::pending().await,
            }
        };
        let due = async {
            match check_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = event => Next::Event(event),
            () = due => Next::Check,
        }
    }
}

enum Next<E> {
    Event(Result<E, Option<BoxError>>),
    Check,
}

/// A run that is followed.
pub(crate) struct FollowedRun<V> {
    pub(crate) link: RunLink,
    pub(crate) vendor: V,
}

#[async_trait]
impl<V: VendorRun> Run for FollowedRun<V> {
    fn remote(&self) -> RemoteRun {
        self.link.remote.clone()
    }

    fn text(&self) -> Option<String> {
        self.vendor.text()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        let Self { link, vendor } = self;
        if let Some(step) = vendor.milestones().next(link.service.vendor()) {
            return Ok(step);
        }
        loop {
            let step = match link.next(V::parse).await {
                Next::Check => vendor.check(link).await?,
                Next::Event(Ok(event)) => vendor.hear(link, event)?,
                Next::Event(Err(error)) => {
                    let error = error.map(|error| error.to_string());
                    tracing::debug!(
                        remote.id = link.remote.short_id(),
                        error,
                        "the stream ended early"
                    );
                    link.close_stream();
                    vendor.stream_ended(link);
                    None
                }
            };
            if let Some(step) = step {
                return Ok(vendor.milestones().before(step));
            }
        }
    }
}
