//! The server as an OAuth 2.1 resource server (M1): its metadata (RFC 9728), the challenge of a refusal, and the principal of an
//! access token.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use outlast_core::{OwnerId, Timestamp};
use outlast_http::oauth::{LEEWAY_SECS, TokenError, TokenVerifier, VerifiedToken};
use serde_json::json;
use tokio::time::Instant;

use crate::caller::{Access, Identification, Principal};

/// The path of the metadata; clients append the path of the resource.
const METADATA: &str = "/.well-known/oauth-protected-resource";
/// The longest time for which a stream stays open, if the token lasts longer.
const MAX_STREAM: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The names of the scopes at the issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeNames {
    /// Reads one's own jobs and reports.
    pub read: String,
    /// Starts and cancels jobs; includes reading.
    pub run: String,
    /// Reads the metrics of all owners; includes running.
    pub admin: String,
}

impl Default for ScopeNames {
    fn default() -> Self {
        let [read, run, admin] =
            ["outlast:read", "outlast:run", "outlast:admin"].map(str::to_owned);
        Self { read, run, admin }
    }
}

impl ScopeNames {
    fn access(&self, token: &VerifiedToken) -> Access {
        let has = |scope: &String| token.scopes.contains(scope);
        match () {
            () if has(&self.admin) => Access::Admin,
            () if has(&self.run) => Access::Run,
            () if has(&self.read) => Access::Read,
            () => Access::Nothing,
        }
    }

    /// Returns the scope that a client must request for this access.
    fn named(&self, access: Access) -> &str {
        match access {
            Access::Nothing | Access::Read => &self.read,
            Access::Run => &self.run,
            Access::Admin => &self.admin,
        }
    }
}

/// The issuer whose tokens a server accepts.
#[derive(Clone)]
pub struct ResourceServer {
    verifier: Arc<TokenVerifier>,
    scopes: ScopeNames,
    /// The address under which clients reach the server.
    public_url: String,
}

impl ResourceServer {
    /// Creates the resource server at this public address, whose MCP endpoint is `/mcp` below it.
    pub fn new(verifier: TokenVerifier, scopes: ScopeNames, public_url: &str) -> Self {
        let public_url = public_url.trim_end_matches('/').to_owned();
        Self { verifier: Arc::new(verifier), scopes, public_url }
    }

    /// Returns the audiences that are accepted if none are configured.
    pub fn default_audiences(public_url: &str) -> Vec<String> {
        let public_url = public_url.trim_end_matches('/');
        ["/mcp", "/mcp/", "", "/"].map(|path| format!("{public_url}{path}")).to_vec()
    }

    /// Identifies the principal of an access token.
    pub(super) async fn principal(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Principal, TokenError> {
        let millis = now.as_millis();
        let verified = self.verifier.verify(token, millis.div_euclid(1000)).await?;
        // A token in its last seconds of tolerance still opens a stream, for as long as it is accepted.
        let ends_at = [verified.expires_at, verified.expires_at.saturating_add(LEEWAY_SECS)]
            .map(|end| end.saturating_mul(1000).saturating_sub(millis))
            .into_iter()
            .find(|left| *left > 0)
            .and_then(|left| u64::try_from(left).ok())
            .map_or(Duration::ZERO, Duration::from_millis);
        Ok(Principal {
            access: self.scopes.access(&verified),
            owner: OwnerId::new(verified.owner),
            expires: Some(Instant::now() + ends_at.min(MAX_STREAM)),
            identified_by: Identification::Token,
        })
    }

    /// Returns the metadata if the request asks for it, or a browser asks whether it may.
    pub(super) fn metadata(&self, request: &Request) -> Option<Response> {
        let resource = request.uri().path().strip_prefix(METADATA)?.trim_end_matches('/');
        let path = self.public_url.split('/').skip(3).map(|part| format!("/{part}"));
        let path = path.collect::<String>();
        if ![String::new(), "/mcp".to_owned(), format!("{path}/mcp")]
            .iter()
            .any(|it| it == resource)
        {
            return None;
        }
        let mut response = match *request.method() {
            Method::GET | Method::HEAD => Json(json!({
                "resource": format!("{}/mcp", self.public_url),
                "authorization_servers": [self.verifier.options().issuer],
                // Clients request what is listed here: not the scope of operators.
                "scopes_supported": [self.scopes.read, self.scopes.run],
                "bearer_methods_supported": ["header"],
                "resource_name": "outlast",
            }))
            .into_response(),
            Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
            _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        };
        let headers = response.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET"));
        let allowed = HeaderValue::from_static("authorization, mcp-protocol-version");
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        allow_any_origin(headers);
        Some(response)
    }

    /// Returns the challenge of a request without a usable token. It names the two scopes of people, because clients register
    /// with the scopes of the first challenge.
    pub(super) fn challenge(&self, problem: Option<&TokenError>) -> Option<HeaderValue> {
        let scope = format!("{} {}", self.scopes.read, self.scopes.run);
        let error = problem.map(|problem| ("invalid_token", problem.to_string()));
        self.bearer(error, &scope)
    }

    /// Returns the challenge of a request whose token lacks a scope.
    pub(super) fn scope_challenge(&self, needed: Access) -> Option<HeaderValue> {
        let scope = self.scopes.named(needed);
        let description = format!("the token lacks the scope {scope}");
        self.bearer(Some(("insufficient_scope", description)), scope)
    }

    fn bearer(&self, error: Option<(&str, String)>, scope: &str) -> Option<HeaderValue> {
        let mut challenge = format!(
            "Bearer resource_metadata=\"{}{METADATA}/mcp\", scope=\"{scope}\"",
            self.public_url
        );
        if let Some((error, description)) = error {
            let fits = |c: &char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\');
            let description: String = description.chars().filter(fits).collect();
            challenge
                .push_str(&format!(", error=\"{error}\", error_description=\"{description}\""));
        }
        HeaderValue::from_str(&challenge).ok()
    }

    /// Returns the name of the scope for an access.
    pub(super) fn scope(&self, access: Access) -> &str {
        self.scopes.named(access)
    }
}

/// Lets pages of any origin read the answer, which contains nothing of any owner.
pub(super) fn allow_any_origin(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("WWW-Authenticate"));
}
