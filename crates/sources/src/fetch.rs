//! Fetches one page under limits (J5). The name is resolved and checked here, and the connection goes to a checked
//! address, so that a second answer of the name server has no effect.

mod decode;
mod robots;

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_http::{BadProxy, ProxyOptions, client_builder, error_chain};
use reqwest::header::{self, HeaderMap};
use reqwest::{Client, Response, dns};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use url::{Host, Url};

use self::decode::{DecodeError, Decoder};
use self::robots::Robots;
use super::address::{AddressRefusal, Policy};

/// The choices of a person or an operator.
#[derive(Clone, Default)]
pub struct FetchOptions {
    /// Lifts the rules for addresses, names and ports: for intranets and tests.
    pub allow_private: bool,
    /// Fetches through the proxy, although addresses cannot be checked there.
    pub through_proxy: bool,
    /// Fetches nothing that the robots.txt of its site disallows.
    pub respect_robots: bool,
    /// The proxy and its exceptions.
    pub proxy: Option<ProxyOptions>,
    /// The limits.
    pub limits: FetchLimits,
    /// Resolves names; `None` asks the system.
    pub lookup: Option<Lookup>,
}

/// The limits of fetching.
#[derive(Clone, Copy, Debug)]
pub struct FetchLimits {
    /// Time to resolve a name.
    pub dns: Duration,
    /// Time to connect.
    pub connect: Duration,
    /// Time until the headers of a response are complete.
    pub headers: Duration,
    /// Time for one source, with its redirects.
    pub source: Duration,
    /// Time for all sources of a check.
    pub check: Duration,
    /// Bytes of the headers of a response.
    pub header_bytes: usize,
    /// Bytes of a body, decoded.
    pub body_bytes: usize,
    /// Bytes that all bodies of a check may have, as received.
    pub check_bytes: u64,
    /// Redirects that are followed for one source.
    pub redirects: u8,
    /// Sources that are fetched at the same time.
    pub at_once: usize,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            dns: Duration::from_secs(3),
            connect: Duration::from_secs(5),
            headers: Duration::from_secs(10),
            source: Duration::from_secs(20),
            check: Duration::from_secs(600),
            header_bytes: 64 << 10,
            body_bytes: 5 << 20,
            check_bytes: 200 << 20,
            redirects: 5,
            at_once: 4,
        }
    }
}

/// Resolves a name to addresses.
pub type Lookup = Arc<dyn Fn(String) -> LookupFuture + Send + Sync>;
type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Returns the resolver of the operating system.
pub fn system_lookup() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// A page that answered.
#[derive(Clone, Debug)]
pub struct FetchedPage {
    /// The address after redirects.
    pub url: Url,
    /// The HTTP status.
    pub status: u16,
    /// The value of the header `Content-Type`.
    pub content_type: String,
    /// True if the server states that it wants proof of a human reader.
    pub is_challenge: bool,
    /// The body, decoded; empty unless the page can be read.
    pub body: Vec<u8>,
    /// True if the body goes on after the limit or was cut on its way.
    pub truncated: bool,
}

/// The reasons a page was not fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// A rule forbids the address.
    #[error("refused: {0}")]
    Refused(#[from] AddressRefusal),
    /// The name does not exist.
    #[error("the name does not exist")]
    NoSuchName,
    /// The page did not answer in time.
    #[error("no answer in time")]
    Timeout,
    /// The name, the connection or the response failed.
    #[error("{0}")]
    Failed(String),
    /// The server redirects again and again.
    #[error("too many redirects")]
    TooManyRedirects,
    /// The headers of the response exceed their limit.
    #[error("the headers of the response are too long")]
    HeadersTooLong,
    /// The coding of the body is unknown, or the body is damaged.
    #[error("the body cannot be decoded")]
    Undecodable,
    /// The check has reached its limit of bytes or time.
    #[error("the limit of the check is reached")]
    CheckLimit,
}

impl FetchError {
    /// Returns the reason in a few words.
    pub(crate) fn detail(&self) -> String {
        let text = match self {
            Self::Refused(refusal) => refusal.to_string(),
            _ => self.to_string(),
        };
        text.chars().filter(|letter| !letter.is_control()).take(300).collect()
    }
}

/// Fetches the sources of one check; limits of time and bytes begin with it.
pub struct Fetcher {
    policy: Policy,
    limits: FetchLimits,
    lookup: Lookup,
    checked: CheckedNames,
    direct: Client,
    proxied: Option<ProxiedClient>,
    through_proxy: bool,
    /// The robots.txt of each site, if they are respected.
    robots: Option<Mutex<HashMap<String, RobotsCell>>>,
    slots: Semaphore,
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
    received: AtomicU64,
    deadline: Instant,
}

type RobotsCell = Arc<OnceCell<Robots>>;

/// The permit to fetch from a host; released on drop.
pub(crate) struct HostTurn(Option<OwnedSemaphorePermit>);

struct ProxiedClient {
    client: Client,
    proxy: ProxyOptions,
}

/// The reasons a fetcher cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum FetcherError {
    /// The address of the proxy is unusable.
    #[error(transparent)]
    Proxy(#[from] BadProxy),
    /// The HTTP client cannot be created.
    #[error("create the HTTP client")]
    Client(#[from] reqwest::Error),
}

impl Fetcher {
    /// Creates a fetcher, whose limit of time begins now.
    pub fn new(options: FetchOptions) -> Result<Self, FetcherError> {
        let policy = Policy { any_address: options.allow_private, any_port: options.allow_private };
        Self::with_policy(policy, options)
    }

    fn with_policy(policy: Policy, options: FetchOptions) -> Result<Self, FetcherError> {
        let FetchOptions { through_proxy, respect_robots, proxy, limits, lookup, .. } = options;
        let checked = CheckedNames::default();
        let direct = client_builder(None, limits.connect)?
            .dns_resolver(checked.clone())
            .referer(false)
            .build()?;
        let proxied = match proxy {
            None => None,
            Some(proxy) => {
                let builder = client_builder(Some(&proxy), limits.connect)?;
                Some(ProxiedClient { client: builder.referer(false).build()?, proxy })
            }
        };
        Ok(Self {
            policy,
            limits,
            lookup: lookup.unwrap_or_else(system_lookup),
            checked,
            direct,
            proxied,
            through_proxy,
            robots: respect_robots.then(Mutex::default),
            slots: Semaphore::new(limits.at_once),
            hosts: Mutex::default(),
            received: AtomicU64::new(0),
            deadline: Instant::now() + limits.check,
        })
    }

    /// Fetches a page. At most [`FetchLimits::at_once`] pages are fetched at the same time, one of each
    /// host; the others wait.
    pub async fn fetch(&self, address: &str) -> Result<FetchedPage, FetchError> {
        let turn = self.turn(address).await;
        self.fetch_in_turn(address, turn).await
    }

    /// The number of pages that are fetched at the same time.
    pub(crate) fn at_once(&self) -> usize {
        self.limits.at_once
    }

    /// Waits until no other page of the same host is being fetched.
    pub(crate) async fn turn(&self, address: &str) -> Result<HostTurn, FetchError> {
        let url = self.policy.parse(address)?;
        let turn = timeout_at(self.deadline, self.host(&url).acquire_owned()).await;
        let turn = turn.map_err(|_| FetchError::CheckLimit)?;
        Ok(HostTurn(turn.ok()))
    }

    /// Fetches a page whose host has been waited for.
    pub(crate) async fn fetch_in_turn(
        &self,
        address: &str,
        turn: Result<HostTurn, FetchError>,
    ) -> Result<FetchedPage, FetchError> {
        let HostTurn(turn) = turn?;
        let url = self.policy.parse(address)?;
        let work = async {
            let _slot = self.slots.acquire().await;
            let until = (Instant::now() + self.limits.source).min(self.deadline);
            timeout_at(until, self.follow(url, turn)).await.unwrap_or(Err(FetchError::Timeout))
        };
        match timeout_at(self.deadline, work).await {
            Ok(Err(FetchError::Timeout)) if Instant::now() >= self.deadline => {
                Err(FetchError::CheckLimit)
            }
            Ok(fetched) => fetched,
            Err(_) => Err(FetchError::CheckLimit),
        }
    }

    /// Follows redirects; every target is checked as if a report had named it.
    async fn follow(
        &self,
        mut url: Url,
        mut turn: Option<OwnedSemaphorePermit>,
    ) -> Result<FetchedPage, FetchError> {
        for _ in 0..=self.limits.redirects {
            self.check_robots(&url).await?;
            let response = self.request(&url).await?;
            let Some(target) = redirect_target(&url, &response) else {
                return self.read(url, response).await;
            };
            let target = self.policy.parse(&target)?;
            if url.scheme() == "https" && target.scheme() == "http" {
                return Err(AddressRefusal::Downgrade.into());
            }
            if url.host_str() != target.host_str() {
                // Released first: two pages that redirect to each other's hosts must not wait for each other.
                drop(turn.take());
                turn = self.host(&target).acquire_owned().await.ok();
            }
            url = target;
        }
        Err(FetchError::TooManyRedirects)
    }

    /// Checks the robots.txt of the site, if it is respected. Each is fetched once.
    async fn check_robots(&self, url: &Url) -> Result<(), FetchError> {
        let Some(robots) = &self.robots else { return Ok(()) };
        let origin = url.origin().ascii_serialization();
        let cell = {
            let mut known = robots.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(origin).or_default())
        };
        let robots = cell.get_or_try_init(|| self.robots(url)).await?;
        if robots.allow(url) { Ok(()) } else { Err(AddressRefusal::Robots.into()) }
    }

    /// Fetches a robots.txt by RFC 9309: a missing one allows everything, a server error nothing.
    async fn robots(&self, url: &Url) -> Result<Robots, FetchError> {
        let mut at = url.join("/robots.txt").map_err(|_| AddressRefusal::Invalid)?;
        for _ in 0..=self.limits.redirects {
            let response = self.request(&at).await?;
            if let Some(target) = redirect_target(&at, &response) {
                let target = self.policy.parse(&target)?;
                if at.scheme() == "https" && target.scheme() == "http" {
                    return Err(AddressRefusal::Downgrade.into());
                }
                at = target;
                continue;
            }
            return match response.status().as_u16() {
                200 | 203 => {
                    let fetched = self.read(at, response).await?;
                    Ok(Robots::parse(&String::from_utf8_lossy(&fetched.body)))
                }
                400..=499 => Ok(Robots::default()),
                status => Err(FetchError::Failed(format!("robots.txt answers with {status}"))),
            };
        }
        Err(FetchError::TooManyRedirects)
    }

    async fn request(&self, url: &Url) -> Result<Response, FetchError> {
        let client = match &self.proxied {
            Some(proxied) if proxied.proxy.applies_to(url) => {
                if !self.through_proxy {
                    return Err(AddressRefusal::Proxy.into());
                }
                &proxied.client
            }
            _ => {
                self.resolve(url).await?;
                &self.direct
            }
        };
        let request = client
            .get(url.clone())
            .header(
                header::ACCEPT,
                "text/html, application/xhtml+xml, application/pdf, text/*;q=0.9, */*;q=0.1",
            )
            .header(header::ACCEPT_ENCODING, "gzip, br");
        let response = timeout(self.limits.headers, request.send())
            .await
            .map_err(|_| FetchError::Timeout)?
            .map_err(|error| failure(error.without_url()))?;
        if header_bytes(response.headers()) > self.limits.header_bytes {
            return Err(FetchError::HeadersTooLong);
        }
        Ok(response)
    }

    /// Resolves the name of a URL, checks every address, and records them for the connection.
    async fn resolve(&self, url: &Url) -> Result<(), FetchError> {
        let Some(Host::Domain(name)) = url.host() else { return Ok(()) };
        let found = timeout(self.limits.dns, (self.lookup)(name.to_owned()))
            .await
            .map_err(|_| FetchError::Timeout)?
            .map_err(lookup_failure)?;
        for address in &found {
            self.policy.check_address(*address)?;
        }
        if found.is_empty() {
            return Err(FetchError::Failed("the name has no address".to_owned()));
        }
        self.checked.insert(name, found);
        Ok(())
    }

    async fn read(&self, url: Url, mut response: Response) -> Result<FetchedPage, FetchError> {
        let text = |name| {
            let value = response.headers().get(name);
            String::from_utf8_lossy(value.map_or(b"", |value| value.as_bytes())).into_owned()
        };
        let mut fetched = FetchedPage {
            url,
            status: response.status().as_u16(),
            content_type: text(header::CONTENT_TYPE),
            is_challenge: response.headers().contains_key("cf-mitigated"),
            body: Vec::new(),
            truncated: false,
        };
        // Only a page that can be read, or one that explains a fault, is worth its body.
        if !matches!(fetched.status, 200 | 203 | 503) {
            return Ok(fetched);
        }
        let mut decoder = Decoder::new(&text(header::CONTENT_ENCODING), self.limits.body_bytes)
            .map_err(|_| FetchError::Undecodable)?;
        let (mut received, mut is_cut) = (0, false);
        loop {
            let piece = match response.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(_) if received > 0 => {
                    is_cut = true;
                    break;
                }
                Err(error) => return Err(failure(error.without_url())),
            };
            received += piece.len();
            let before = self.received.fetch_add(piece.len() as u64, Ordering::Relaxed);
            if before >= self.limits.check_bytes {
                return Err(FetchError::CheckLimit);
            }
            match decoder.push(&piece) {
                Ok(false) if received <= self.limits.body_bytes => {}
                Ok(_) => {
                    is_cut = true;
                    break;
                }
                Err(DecodeError::Damaged | DecodeError::Unknown) => {
                    return Err(FetchError::Undecodable);
                }
            }
        }
        let (body, is_whole) = decoder.finish();
        if body.is_empty() && !is_whole {
            return Err(FetchError::Undecodable);
        }
        fetched.body = body;
        fetched.truncated = is_cut || !is_whole;
        Ok(fetched)
    }

    fn host(&self, url: &Url) -> Arc<Semaphore> {
        let name = url.host_str().unwrap_or_default().to_owned();
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(hosts.entry(name).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}

/// The checked addresses of each name: the only ones to which the HTTP library connects.
#[derive(Clone, Default)]
struct CheckedNames(Arc<Mutex<HashMap<String, Vec<IpAddr>>>>);

impl CheckedNames {
    fn insert(&self, name: &str, addresses: Vec<IpAddr>) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name.to_owned(), addresses);
    }
}

impl dns::Resolve for CheckedNames {
    fn resolve(&self, name: dns::Name) -> dns::Resolving {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = names.get(name.as_str()).cloned().unwrap_or_default();
        Box::pin(async move {
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as dns::Addrs)
        })
    }
}

/// Returns the address to which a response redirects.
fn redirect_target(url: &Url, response: &Response) -> Option<String> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(header::LOCATION)?.to_str().ok()?;
    Some(url.join(location).map_or_else(|_| location.to_owned(), String::from))
}

fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

fn failure(error: reqwest::Error) -> FetchError {
    if error.is_timeout() { FetchError::Timeout } else { FetchError::Failed(error_chain(&error)) }
}

/// Distinguishes a name that does not exist from a name server that does not answer. The standard library has no error kind
/// for it.
fn lookup_failure(error: io::Error) -> FetchError {
    const UNKNOWN: [&str; 3] =
        ["Name or service not known", "nodename nor servname provided", "Name does not resolve"];
    let text = error.to_string();
    let is_unknown =
        error.kind() == io::ErrorKind::NotFound || UNKNOWN.iter().any(|known| text.contains(known));
    if is_unknown { FetchError::NoSuchName } else { FetchError::Failed(text) }
}

#[cfg(test)]
mod tests;
