//! Connects to the database.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use futures_util::future::BoxFuture;
use outlast_core::StoreError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::time::Instant;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{self, TlsMode, TlsSettings};
use super::fault::{Fault, within};
use super::lineage::{FoundDatabase, Lineage};
use crate::{columns, unavailable};

/// The settings of every connection. Behind a pooler they cannot be startup parameters. A plan that was made for a small
/// table is kept until the table is analyzed, so no plan may read a whole table if an index finds its rows.
const SETTINGS: &str = "set idle_in_transaction_session_timeout = '10s'; set lock_timeout = '5s'; set jit = off;
     set enable_seqscan = off; set plan_cache_mode = force_generic_plan; set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2;
     set tcp_keepalives_count = 3; set client_min_messages = warning";

/// Advances the sequence before the first write over a fresh connection. Otherwise, after a failover, the server would assign
/// numbers again that it had already assigned.
pub(super) const SKIP_LOST_REVS: &str =
    "select setval('rev', (select last_value from rev) + 1000000)
     from (select pg_advisory_xact_lock(lock_class('meta'))) as one_at_a_time";

/// The time limit of opening a connection.
const GREETING: Duration = Duration::from_secs(10);

/// The limits of a process's connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The time for which opening the store waits for an unavailable database.
    pub connect: Duration,
    /// The time limit of a statement.
    pub statement: Duration,
    /// The number of pooled connections; the session has another one.
    pub pool_size: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { connect: Duration::ZERO, statement: Duration::from_secs(10), pool_size: 8 }
    }
}

/// A database, from its URL.
pub(super) struct DatabaseTarget {
    config: Config,
    tls: MakeRustlsConnect,
}

/// The task that drives a connection.
pub(super) type ConnectionTask =
    Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// The checks of the server's certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verify {
    /// Checks the issuer and the name.
    Full,
    /// Checks nothing: the connection is encrypted, but the server is not authenticated.
    Nothing,
}

impl DatabaseTarget {
    /// Parses a URL.
    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        let (mut config, settings) = address::read(url).map_err(unavailable)?;
        let is_near = config.get_hosts().iter().all(|host| match host {
            Host::Tcp(name) => {
                name == "localhost"
                    || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
            }
            Host::Unix(_) => true,
        });
        let (ssl, verify) = match settings.mode {
            Some(TlsMode::Disable) => (SslMode::Disable, Verify::Nothing),
            Some(TlsMode::Prefer) => (SslMode::Prefer, Verify::Nothing),
            Some(TlsMode::Require) => (SslMode::Require, Verify::Nothing),
            Some(TlsMode::VerifyFull) => (SslMode::Require, Verify::Full),
            None if is_near => (SslMode::Prefer, Verify::Nothing),
            None => (SslMode::Require, Verify::Full),
        };
        config
            .ssl_mode(ssl)
            .application_name("outlast")
            .connect_timeout(Duration::from_secs(5))
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(3)
            // Keepalives are not sent while data waits for its acknowledgement.
            .tcp_user_timeout(Duration::from_secs(10));
        Ok(Self { config, tls: MakeRustlsConnect::new(tls(verify, &settings)?) })
    }

    /// Opens a connection outside the pool. The driver's own limit covers only the socket's connection, not the startup
    /// messages after it.
    pub(super) fn connect(&self) -> BoxFuture<'_, Result<(Client, ConnectionTask), Fault>> {
        Box::pin(within(GREETING, self.config.connect(self.tls.clone())))
    }

    /// Opens a connection, and retries for a while if the database is unavailable or starting.
    pub(super) async fn connect_within(
        &self,
        limit: Duration,
    ) -> Result<(Client, ConnectionTask), Fault> {
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_millis(100);
        loop {
            match self.connect().await {
                Err(fault) if fault.is_passing() && Instant::now() + pause < deadline => {
                    let seconds = (deadline - Instant::now()).as_secs();
                    tracing::warn!(error = %fault.describe(), "failed to connect to the database; retrying for {seconds} s");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
                done => return done,
            }
        }
    }

    /// Applies the settings to a fresh connection.
    pub(super) async fn prepare(&self, client: &Client) -> Result<(), Fault> {
        Ok(client.batch_execute(SETTINGS).await?)
    }

    /// Creates the pool of connections for reads and steps, which are opened on demand. Each connection verifies that the
    /// database has this lineage. Without a lineage, the pool is only for reading.
    pub(super) fn pool(
        &self,
        limits: ConnectionLimits,
        lineage: Option<Arc<Lineage>>,
    ) -> Result<Pool, StoreError> {
        let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.config.clone(), self.tls.clone(), fast);
        let settings = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
            let lineage = lineage.clone();
            Box::pin(async move {
                client.batch_execute(SETTINGS).await.map_err(HookError::Backend)?;
                match lineage {
                    Some(lineage) => begin_writing(client, &lineage).await.map_err(hook_error),
                    None => Ok(()),
                }
            })
        });
        Pool::builder(manager)
            .max_size(limits.pool_size.max(2))
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(Duration::from_secs(5)))
            .create_timeout(Some(limits.statement))
            .recycle_timeout(Some(limits.statement))
            .post_create(settings)
            .build()
            .map_err(unavailable)
    }
}

/// Verifies the database before the first write over a fresh connection, and advances its change numbers.
async fn begin_writing(client: &Client, lineage: &Lineage) -> Result<(), Fault> {
    let before = lineage.last_seen();
    lineage.recognize(&FoundDatabase::look(client).await?, &before)?;
    let expected = lineage.expected_values();
    let rows = client.query_typed(SKIP_LOST_REVS, &[]).await?;
    let rev = rows.first().map(|row| row.try_get(0)).transpose()?;
    lineage.saw(&expected, columns::rev(rev.unwrap_or(0)));
    Ok(())
}

fn hook_error(fault: Fault) -> HookError {
    match fault {
        Fault::Sql(error) => HookError::Backend(error),
        Fault::Refused(StoreError::Outdated { why }) => HookError::message(why),
        other => HookError::message(other.describe()),
    }
}

fn tls(verify: Verify, settings: &TlsSettings) -> Result<ClientConfig, StoreError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unavailable)?;
    let builder = match (verify, &settings.roots) {
        (Verify::Nothing, _) => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked(provider)))
        }
        (Verify::Full, None) => {
            let verifier =
                rustls_platform_verifier::Verifier::new(provider).map_err(unavailable)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        (Verify::Full, Some(path)) => {
            let mut store = rustls::RootCertStore::empty();
            for certificate in certificates(path, "sslrootcert")? {
                store.add(certificate).map_err(|error| unreadable(path, "sslrootcert", error))?;
            }
            builder.with_root_certificates(store)
        }
    };
    match (&settings.certificate, &settings.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates(certificate, "sslcert")?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| unreadable(key, "sslkey", error))?;
            builder.with_client_auth_cert(chain, key).map_err(unavailable)
        }
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(_), None) | (None, Some(_)) => {
            Err(unavailable("sslcert and sslkey belong together: the address has only one of them"))
        }
    }
}

fn certificates(path: &Path, parameter: &str) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    read.map_err(|error| unreadable(path, parameter, error))
}

fn unreadable(path: &Path, parameter: &str, error: impl std::fmt::Display) -> StoreError {
    unavailable(format!("cannot read the file of {parameter}, {}: {error}", path.display()))
}

/// Accepts every certificate, as `sslmode` `prefer` and `require` specify.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F6: only a connection that leaves this machine must be encrypted, to a server whose name was verified.
    #[tokio::test]
    async fn f6_a_server_elsewhere_is_reached_in_private_without_being_asked() {
        for (host, ssl) in [
            ("localhost", SslMode::Prefer),
            ("127.0.0.1", SslMode::Prefer),
            ("[::1]", SslMode::Prefer),
            ("%2Frun%2Fpostgresql", SslMode::Prefer),
            ("db.example.org", SslMode::Require),
            ("10.0.0.7", SslMode::Require),
            ("localhost,db.example.org", SslMode::Require),
        ] {
            let target = DatabaseTarget::parse(&format!("postgres://outlast@{host}/jobs")).unwrap();
            assert_eq!(target.config.get_ssl_mode(), ssl, "{host}");
        }
        let plain =
            DatabaseTarget::parse("postgres://db.example.org/jobs?sslmode=disable").unwrap();
        assert_eq!(plain.config.get_ssl_mode(), SslMode::Disable);
    }
}
