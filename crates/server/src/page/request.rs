//! A request for the page: the state it can reach, its visitor, and its error pages.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::ExtensionRejection;
use axum::extract::{Extension, FromRequestParts};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use maud::{Markup, html};
use outlast_core::{JobId, StoreError};
use outlast_engine::Engine;

use super::form::{Fields, MAX_FORM_BYTES};
use super::layout::message;
use super::options::PageOptions;
use super::session::Visitor;
use crate::http::{App, FormSender};

/// A request of a visitor who is signed in.
pub(super) struct PageRequest {
    pub(super) app: Arc<App>,
    pub(super) visitor: Visitor,
    pub(super) headers: HeaderMap,
}

/// An error page or redirect that replaces the requested page.
pub(super) struct Replacement(Box<Response>);

/// The result of a request.
pub(super) type PageResult = Result<Response, Replacement>;

impl FromRequestParts<Arc<App>> for PageRequest {
    type Rejection = ExtensionRejection;

    async fn from_request_parts(
        parts: &mut Parts,
        app: &Arc<App>,
    ) -> Result<Self, Self::Rejection> {
        let Extension(visitor) = Extension::from_request_parts(parts, app).await?;
        Ok(Self { app: Arc::clone(app), visitor, headers: parts.headers.clone() })
    }
}

impl IntoResponse for Replacement {
    fn into_response(self) -> Response {
        *self.0
    }
}

impl PageRequest {
    pub(super) fn engine(&self) -> &Engine {
        self.app.engine()
    }

    pub(super) fn options(&self) -> &PageOptions {
        &self.app.options.page
    }

    /// Parses the id of the job in an address.
    pub(super) fn job_id(&self, id: &str) -> Result<JobId, Replacement> {
        id.parse().map_err(|_| self.not_found())
    }

    /// Reads the submitted form.
    pub(super) async fn form(&self, body: Body) -> Result<Fields, Replacement> {
        let sender = FormSender::SignedIn(&self.visitor.owner);
        match self.app.read_form(&self.headers, body, sender, MAX_FORM_BYTES).await {
            Ok(bytes) => Ok(Fields::parse(&bytes)),
            Err(refused) => {
                let why = "The form is too long, did not arrive whole, or too much is being sent at the moment.";
                let refused = refused.status();
                Err(self.refuse(refused, "Not done", why, &all_jobs()))
            }
        }
    }

    /// Returns the value from the store, or a "not found" page.
    pub(super) fn require_found<T>(
        &self,
        found: Result<Option<T>, StoreError>,
    ) -> Result<T, Replacement> {
        self.read(found)?.ok_or_else(|| self.not_found())
    }

    /// Returns the value from the store, or an error page if the store cannot be read.
    pub(super) fn read<T>(&self, read: Result<T, StoreError>) -> Result<T, Replacement> {
        read.map_err(|error| {
            tracing::warn!(%error, "the page cannot read the store");
            self.refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                "The store cannot be read",
                "The job store cannot be read just now; jobs that run are not touched by that.",
                &html! {
                    a href="" { "Try again" } ", or see the log of the server: "
                    code { "outlast doctor" } " looks for the cause."
                },
            )
        })
    }

    pub(super) fn not_found(&self) -> Replacement {
        let why =
            "There is nothing here: it was removed, its retention has ended, or it is not yours.";
        self.refuse(StatusCode::NOT_FOUND, "Not found", why, &all_jobs())
    }

    /// Returns a page with a sentence and a link.
    pub(super) fn refuse(
        &self,
        status: StatusCode,
        title: &str,
        why: &str,
        next: &Markup,
    ) -> Replacement {
        Replacement(Box::new(message(status, Some(&self.visitor), title, why, next)))
    }
}

/// The default link of an error page.
pub(super) fn all_jobs() -> Markup {
    html! { a href="/ui" { "All jobs" } }
}
