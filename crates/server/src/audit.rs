//! The port to the audit log (M5). An entry never contains a question, a report or a token.

use std::net::IpAddr;

use axum::response::Response;
use outlast_core::OwnerId;

use crate::http::App;

/// Records what callers were refused, and who signed in. The starts and ends of jobs are events of the store.
pub trait AuditLog: Send + Sync {
    /// Records an event. Returns at once, and nothing depends on its success.
    fn record(&self, event: &AuditEvent<'_>);
}

/// An event that is not a write to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditEvent<'a> {
    /// A person signed in at the page.
    SignIn { owner: &'a OwnerId, address: IpAddr },
    /// A call of a tool was refused.
    RefusedCall { owner: &'a OwnerId, tool: &'a str, code: &'a str },
    /// An HTTP request was refused before its owner was known, or because the owner may not send it.
    RefusedRequest {
        address: IpAddr,
        method: &'a str,
        /// The path without the query, which may contain a secret.
        path: &'a str,
        status: u16,
        /// The code in the body, if it is JSON.
        code: Option<&'static str>,
    },
}

/// The code of a refusal, attached to its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusedWith(pub(crate) &'static str);

/// The owner who has just signed in, attached to the response.
#[derive(Clone, Debug)]
pub(crate) struct SignedIn(pub(crate) OwnerId);

/// The facts of an HTTP request that are recorded.
pub(crate) struct AuditedRequest {
    pub(crate) address: IpAddr,
    pub(crate) method: String,
    pub(crate) path: String,
}

impl AuditedRequest {
    /// Records the sign-in or the refusal that a response reports, if it reports one.
    pub(crate) fn record(&self, app: &App, response: &Response) {
        let Some(audit) = app.audit() else { return };
        if let Some(SignedIn(owner)) = response.extensions().get() {
            audit.record(&AuditEvent::SignIn { owner, address: self.address });
        }
        let status = response.status().as_u16();
        if matches!(status, 401 | 403 | 421 | 429) {
            let code = response.extensions().get().map(|RefusedWith(code)| *code);
            audit.record(&AuditEvent::RefusedRequest {
                address: self.address,
                method: &self.method,
                path: &self.path,
                status,
                code,
            });
        }
    }
}
