//! A database that hangs: a relay before the server that holds bytes back while its connections stay open.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;

/// The part of the bytes that a relay lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// Both directions.
    Everything,
    /// From the store to the server alone: the server works, and its answers are held back.
    Requests,
    /// Neither direction.
    Nothing,
}

/// Passes bytes on between stores and the server.
pub struct Relay {
    port: u16,
    passing: watch::Sender<Passing>,
}

impl Relay {
    /// Listens on a free port of this machine.
    ///
    /// # Panics
    /// When there is no port or no server.
    pub async fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.expect("a port is free"))
    }

    /// Listens on this socket.
    ///
    /// # Panics
    /// When the socket has no address.
    pub fn on(listener: TcpListener) -> Self {
        let port = listener.local_addr().expect("it listens").port();
        let passing = watch::Sender::new(Passing::Everything);
        let (sender, socket) = (passing.clone(), super::socket());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = UnixStream::connect(&socket).await else { continue };
                let ((near_read, near_write), (far_read, far_write)) =
                    (near.into_split(), far.into_split());
                let may_ask = |passing: Passing| passing != Passing::Nothing;
                let may_answer = |passing: Passing| passing == Passing::Everything;
                tokio::spawn(pass(near_read, far_write, sender.subscribe(), may_ask));
                tokio::spawn(pass(far_read, near_write, sender.subscribe(), may_answer));
            }
        });
        Self { port, passing }
    }

    /// Lets this much through from now on.
    pub fn pass(&self, passing: Passing) {
        self.passing.send_replace(passing);
    }

    /// The address of a schema of [`super::fresh_schema`] through this relay.
    ///
    /// # Panics
    /// When the address names no schema.
    pub fn url(&self, schema: &str) -> String {
        let (_, options) = schema.split_once("options=").expect("the address names a schema");
        let port = self.port;
        format!("postgres://outlast@127.0.0.1:{port}/postgres?sslmode=disable&options={options}")
    }
}

async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut passing: watch::Receiver<Passing>,
    may_pass: fn(Passing) -> bool,
) {
    let mut bytes = [0; 16_384];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if passing.wait_for(|passing| may_pass(*passing)).await.is_err()
            || to.write_all(&bytes[..read]).await.is_err()
        {
            return;
        }
    }
}
