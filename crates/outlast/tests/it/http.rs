//! `serve --http` on the real binary over real sockets.

pub(crate) mod client;

mod calls;
mod fairness;
mod figures;
mod floods;
mod hostile;
mod leaving;
mod limits;
mod oauth;
mod replicas;
mod sessions;
mod tokens;
