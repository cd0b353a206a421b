//! `outlast serve --http`: from the configuration to an open socket and the server's options.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::Context;
use outlast_core::OwnerId;
use outlast_http::oauth::{TokenVerifier, VerifierOptions};
use outlast_server::{
    Callers, Hosts, HttpOptions, PageOptions, Rates, ResourceServer, Room, Routes,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;

use crate::cli::ServeArgs;
use crate::commands::explain_config_error;
use crate::config::{Config, LOCAL, StoreUrl};
use crate::error::{CommandResult, OrUsage as _, refuse};
use crate::open_store::check_owner;

/// The time for which an unused session is kept. Clients that lose one are slow to notice, so it is long.
const SESSION_IDLE: Duration = Duration::from_secs(60 * 60);
/// Open files reserved for everything but connections, and for each running job.
const OPEN_FILES: usize = 256;
const OPEN_FILES_PER_JOB: usize = 4;
/// The number of wrong tokens per minute from one address.
const STRANGERS: NonZeroU32 = NonZeroU32::new(60).unwrap();

/// Opens the socket of a worker, which serves only health and metrics.
pub(in crate::commands) async fn open_for_operators(
    address: SocketAddr,
    config: &Config,
) -> CommandResult<(TcpListener, HttpOptions)> {
    let callers = callers(false, config)?;
    let oauth = resource_server(config, VerifierOptions::REFETCH_AFTER)?;
    let listener = listen(address).await?;
    let room = Room::default();
    let options = HttpOptions {
        routes: Routes::OfOperators,
        callers,
        oauth,
        // Its routes accept any host name.
        hosts: Hosts::loopback(),
        origins: config.http.origins.clone(),
        trusted_proxies: config.http.trusted_proxies.clone(),
        rates: Rates { per_owner: config.http.rate_per_minute, strangers: STRANGERS },
        session_idle: SESSION_IDLE,
        room: Room { connections: connections(config, &room), ..room },
        page: PageOptions::none(),
    };
    Ok((listener, options))
}

async fn listen(address: SocketAddr) -> CommandResult<TcpListener> {
    let listening = TcpListener::bind(address).await;
    let listener = listening
        .with_context(|| format!("listen on {address}"))
        .or_usage("choose another address or port, or port 0 for any that is free")?;
    raise_open_files();
    Ok(listener)
}

/// Checks the arguments and opens the socket.
pub(super) async fn open(
    address: SocketAddr,
    args: &ServeArgs,
    config: &Config,
    page: PageOptions,
) -> CommandResult<(TcpListener, HttpOptions)> {
    let (local, no_auth) = (address.ip().is_loopback(), args.no_auth);
    if no_auth && !local {
        let why = format!("--no-auth would let in everyone who can reach {address}");
        return refuse(why, "leave it out, or listen on 127.0.0.1");
    }
    let hosts = match &config.http.hosts {
        Some(hosts) => hosts.clone(),
        None if local => Hosts::loopback(),
        None => {
            let why = "can be reached from elsewhere, under names that are not configured";
            let hint = "set OUTLAST_ALLOWED_HOSTS to the names clients use, or listen on 127.0.0.1";
            return refuse(format!("{address} {why}"), hint);
        }
    };
    if no_auth && config.http.oauth.is_some() {
        let why = "--no-auth lets everyone in, and oauth.issuer asks for access tokens";
        return refuse(why, "leave out one of them");
    }
    let callers = callers(no_auth, config)?;
    let refetch_after = args.key_refetch_ms.map(Duration::from_millis);
    let oauth = resource_server(config, refetch_after.unwrap_or(VerifierOptions::REFETCH_AFTER))?;
    let listener = listen(address).await?;
    let room = Room::default();
    let options = HttpOptions {
        routes: Routes::All,
        callers,
        oauth,
        hosts,
        origins: config.http.origins.clone(),
        trusted_proxies: config.http.trusted_proxies.clone(),
        rates: Rates { per_owner: config.http.rate_per_minute, strangers: STRANGERS },
        session_idle: args.session_idle_ms.map_or(SESSION_IDLE, Duration::from_millis),
        room: Room {
            connections: args.max_connections.unwrap_or_else(|| connections(config, &room)),
            body_bytes: args.max_body_bytes.unwrap_or(room.body_bytes),
            write_timeout: args.write_timeout_ms.map_or(room.write_timeout, Duration::from_millis),
        },
        page,
    };
    Ok((listener, options))
}

fn callers(no_auth: bool, config: &Config) -> CommandResult<Callers> {
    let is_shared = matches!(config.store, StoreUrl::Postgres(_));
    if no_auth {
        tracing::warn!("no token is asked for: every program on this machine can start jobs");
        if is_shared {
            check_owner(config)?;
            return Ok(Callers::WithoutToken(config.owner.clone()));
        }
        return Ok(Callers::WithoutToken(OwnerId::new(LOCAL)));
    }
    let tokens = config.http.tokens.read().map_err(explain_config_error)?;
    if !tokens.is_empty() {
        return Ok(Callers::WithToken(tokens));
    }
    // Clients sign in at the issuer; a token that was not requested would only be another way in.
    if config.http.oauth.is_some() {
        return Ok(Callers::WithToken(tokens));
    }
    if is_shared {
        let why = "a store that many machines share needs tokens that name their owners, the same on every server";
        return refuse(why, "set OUTLAST_TOKENS or OUTLAST_TOKENS_FILE");
    }
    let (tokens, file) = config.http.own_token().map_err(explain_config_error)?;
    tracing::info!("clients need the token in {}", file.display());
    Ok(Callers::WithToken(tokens))
}

/// Returns the options of the verifier of access tokens, if an issuer is configured.
pub(in crate::commands) fn verifier_options(
    config: &Config,
    refetch_after: Duration,
) -> Option<VerifierOptions> {
    let (oauth, public_url) = (config.http.oauth.as_ref()?, config.http.public_url.as_ref()?);
    let audiences = match oauth.audiences.is_empty() {
        true => ResourceServer::default_audiences(public_url),
        false => oauth.audiences.clone(),
    };
    Some(VerifierOptions {
        issuer: oauth.issuer.clone(),
        audiences,
        jwks_url: oauth.jwks_url.clone(),
        owner_claim: oauth.owner_claim.clone(),
        proxy: config.proxy.clone(),
        refetch_after,
    })
}

fn resource_server(
    config: &Config,
    refetch_after: Duration,
) -> CommandResult<Option<ResourceServer>> {
    let options = verifier_options(config, refetch_after);
    let (Some(options), Some(oauth)) = (options, &config.http.oauth) else { return Ok(None) };
    let public_url = config.http.public_url.as_deref().unwrap_or_default();
    tracing::info!(issuer = oauth.issuer, "access tokens of this issuer are accepted");
    let verifier = TokenVerifier::new(options)
        .context("accept access tokens")
        .or_usage("check the section [oauth] and the proxy")?;
    Ok(Some(ResourceServer::new(verifier, oauth.scopes.clone(), public_url)))
}

/// Returns the maximum number of connections. Some open files are reserved for the store, for provider calls and for
/// commands, so that clients cannot block the work.
fn connections(config: &Config, room: &Room) -> usize {
    let limit = getrlimit(Resource::Nofile)
        .current
        .map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let kept_back = (OPEN_FILES + OPEN_FILES_PER_JOB * config.concurrency).min(limit / 2);
    let connections = (limit - kept_back).min(room.connections);
    if connections < room.connections {
        tracing::info!(connections, "the limit of open files allows fewer connections");
    }
    connections
}

/// Raises the limit of open files: every waiting client holds a socket, every command three pipes, and many systems
/// start a process with far fewer than it may request.
pub(super) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
