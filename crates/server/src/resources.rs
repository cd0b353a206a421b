//! The caller's own reports and jobs as MCP resources (L3).

mod listen;
mod render;
mod subscriptions;

use outlast_core::{
    ConversationId, ConversationQuery, Cursor, JobId, JobQuery, OwnerId, StoreError,
};
use outlast_sources::CitationCheck;
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, MetaObject, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::json;

use crate::caller::Caller;
use crate::citations::{check_of, last_report};
use crate::face::Face;
use crate::reply::Refusal;
pub(crate) use listen::{find_unread_filter, rewrite};
pub(crate) use render::{MARKDOWN, report_link};
pub(crate) use subscriptions::Subscriptions;

const REPORTS: &str = "outlast://reports/";
/// The end of the address of a check.
const CITATIONS: &str = "/citations";
const JOBS: &str = "outlast://jobs/";
/// The number of reports, and of jobs, in one page of the list. Each is read for its size.
const PAGE: u32 = 20;

/// The resource that an address names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResourceId {
    Report(ConversationId),
    /// The check of the citations of a conversation's last report.
    Citations(ConversationId),
    Job(JobId),
}

impl ResourceId {
    /// Parses the address of one of these resources.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        if let Some(id) = uri.strip_prefix(REPORTS).and_then(|id| id.strip_suffix(CITATIONS)) {
            return (!id.is_empty()).then(|| Self::Citations(ConversationId::new(id)));
        }
        match (uri.strip_prefix(REPORTS), uri.strip_prefix(JOBS)) {
            (Some(id), _) if !id.is_empty() => Some(Self::Report(ConversationId::new(id))),
            (_, Some(id)) => Some(Self::Job(id.parse().ok()?)),
            (Some(_) | None, None) => None,
        }
    }

    /// Returns its address.
    pub(crate) fn uri(&self) -> String {
        match self {
            Self::Report(id) => format!("{REPORTS}{id}"),
            Self::Citations(id) => format!("{REPORTS}{id}{CITATIONS}"),
            Self::Job(id) => format!("{JOBS}{id}"),
        }
    }
}

/// The start of a page of the list: reports come first, then jobs, each newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListPlace {
    Reports(Option<Cursor>),
    Jobs(Option<Cursor>),
}

impl ListPlace {
    /// Parses `r17`, `j17` or `j`.
    fn parse(text: &str) -> Option<Self> {
        let after = |number: &str| number.parse().ok().map(Cursor);
        match (text.strip_prefix('r'), text.strip_prefix('j')) {
            (Some(number), _) => Some(Self::Reports(Some(after(number)?))),
            (_, Some("")) => Some(Self::Jobs(None)),
            (_, Some(number)) => Some(Self::Jobs(Some(after(number)?))),
            (None, None) => None,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Reports(after) => format!("r{}", after.map_or(0, |Cursor(at)| at)),
            Self::Jobs(None) => "j".to_owned(),
            Self::Jobs(Some(Cursor(at))) => format!("j{at}"),
        }
    }
}

impl Face {
    /// `resources/list`: returns a page of the caller's reports and jobs.
    pub(crate) async fn resources(
        &self,
        caller: &Caller,
        cursor: Option<&str>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let place = match cursor {
            None => ListPlace::Reports(None),
            Some(text) => ListPlace::parse(text).ok_or_else(|| {
                ErrorData::invalid_params(
                    "cursor must be the nextCursor of an earlier answer",
                    None,
                )
            })?,
        };
        let mut listed = Vec::new();
        let next = match place {
            ListPlace::Reports(after) => {
                match self
                    .list_reports(&caller.owner, after, &mut listed)
                    .await
                    .map_err(report_refusal)?
                {
                    Some(next) => Some(ListPlace::Reports(Some(next))),
                    None if listed.len() < PAGE as usize => {
                        self.list_jobs(caller, None, &mut listed).await.map_err(report_refusal)?
                    }
                    None => Some(ListPlace::Jobs(None)),
                }
            }
            ListPlace::Jobs(after) => {
                self.list_jobs(caller, after, &mut listed).await.map_err(report_refusal)?
            }
        };
        let mut result = ListResourcesResult::with_all_items(listed);
        result.next_cursor = next.map(ListPlace::text);
        Ok(result)
    }

    async fn list_reports(
        &self,
        owner: &OwnerId,
        after: Option<Cursor>,
        listed: &mut Vec<Resource>,
    ) -> Result<Option<Cursor>, StoreError> {
        let query = ConversationQuery { states: Vec::new(), limit: PAGE, after };
        let page = self.engine.conversations(owner, &query).await?;
        for summary in page.conversations.iter().filter(|it| it.reports > 0) {
            if let Some(conversation) = self.engine.conversation(owner, &summary.id).await? {
                listed.push(render::report(&conversation));
            }
        }
        Ok(page.next)
    }

    async fn list_jobs(
        &self,
        caller: &Caller,
        after: Option<Cursor>,
        listed: &mut Vec<Resource>,
    ) -> Result<Option<ListPlace>, StoreError> {
        let query = JobQuery { limit: PAGE, after, ..JobQuery::default() };
        let page = self.engine.list(&caller.scope(), &query).await?;
        for summary in &page.jobs {
            if let Some(job) = self.engine.job(&caller.scope(), &summary.id).await? {
                listed.push(render::job(&job));
            }
        }
        Ok(page.next.map(|next| ListPlace::Jobs(Some(next))))
    }

    /// `resources/read`: returns the content of one of the caller's resources.
    pub(crate) async fn resource(
        &self,
        caller: &Caller,
        uri: &str,
    ) -> Result<ReadResourceResult, ErrorData> {
        let (mime_type, text) = match ResourceId::parse(uri) {
            Some(ResourceId::Report(id)) => {
                let found =
                    self.engine.conversation(&caller.owner, &id).await.map_err(report_refusal)?;
                (MARKDOWN, found.map(|conversation| render::report_text(&conversation)))
            }
            Some(ResourceId::Citations(id)) => {
                let check = self.last_check(caller, &id).await.map_err(report_refusal)?;
                (render::JSON, check.and_then(|check| serde_json::to_string_pretty(&check).ok()))
            }
            Some(ResourceId::Job(id)) => {
                let found = self.engine.job(&caller.scope(), &id).await.map_err(report_refusal)?;
                (render::JSON, found.map(|job| render::job_text(&job)))
            }
            None => return Err(report_unknown(uri)),
        };
        let text = text.ok_or_else(|| report_unknown(uri))?;
        let mut meta = MetaObject::default();
        meta.insert("outlast/untrusted".to_owned(), true.into());
        Ok(ReadResourceResult::new(vec![ResourceContents::TextResourceContents {
            uri: uri.to_owned(),
            mime_type: Some(mime_type.to_owned()),
            text,
            meta: Some(meta),
        }]))
    }

    /// Returns the newest check of the last report of a conversation.
    async fn last_check(
        &self,
        caller: &Caller,
        id: &ConversationId,
    ) -> Result<Option<CitationCheck>, StoreError> {
        let conversation = self.engine.conversation(&caller.owner, id).await?;
        match conversation.as_ref().and_then(last_report) {
            Some(report) => check_of(&self.engine, &caller.scope(), report).await,
            None => Ok(None),
        }
    }

    /// Returns the resource that an address names, if the caller has it.
    pub(crate) async fn resource_id(
        &self,
        caller: &Caller,
        uri: &str,
    ) -> Result<Option<ResourceId>, ErrorData> {
        let Some(id) = ResourceId::parse(uri) else { return Ok(None) };
        let is_own = match &id {
            ResourceId::Report(id) => {
                self.engine.conversation(&caller.owner, id).await.map_err(report_refusal)?.is_some()
            }
            ResourceId::Citations(id) => {
                self.last_check(caller, id).await.map_err(report_refusal)?.is_some()
            }
            ResourceId::Job(id) => {
                self.engine.job(&caller.scope(), id).await.map_err(report_refusal)?.is_some()
            }
        };
        Ok(is_own.then_some(id))
    }
}

/// `resources/templates/list`
pub(crate) fn templates() -> ListResourceTemplatesResult {
    let template = |uri: &str, name: &str, title: &str, about: &str, mime_type: &str| {
        ResourceTemplate::new(uri, name)
            .with_title(title)
            .with_description(about)
            .with_mime_type(mime_type)
    };
    ListResourceTemplatesResult::with_all_items(vec![
        template(
            "outlast://reports/{conversationId}",
            "report",
            "Research report",
            "A conversation as one document: its questions, its reports and their sources.",
            MARKDOWN,
        ),
        template(
            "outlast://reports/{conversationId}/citations",
            "citations",
            "Citation check",
            "Which sentences of a conversation's last report its sources support, once it was checked.",
            render::JSON,
        ),
        template(
            "outlast://jobs/{jobId}",
            "job",
            "Job",
            "The state of a job, its cost and, if it belongs to no conversation, its result.",
            render::JSON,
        ),
    ])
}

/// Resources of other owners, removed ones and invented ones get the same error. rmcp gives it the code of the client's era.
pub(crate) fn report_unknown(uri: &str) -> ErrorData {
    let sentence = "there is no such resource; resources/list names them all";
    ErrorData::resource_not_found(sentence, Some(json!({ "uri": uri })))
}

fn report_refusal(error: StoreError) -> ErrorData {
    ErrorData::internal_error(Refusal::from(error).into_sentence(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l3_an_address_is_read_as_it_was_written() {
        let job = "0123456789abcdef0123456789abcdef";
        for uri in [
            format!("outlast://reports/{job}/citations"),
            format!("outlast://reports/{job}"),
            format!("outlast://jobs/{job}"),
        ] {
            assert_eq!(ResourceId::parse(&uri).unwrap().uri(), uri);
        }
        for bad in ["outlast://reports/", "outlast://jobs/x", "ui://outlast/job", ""] {
            assert_eq!(ResourceId::parse(bad), None, "{bad}");
        }
        for place in [
            ListPlace::Reports(Some(Cursor(3))),
            ListPlace::Jobs(None),
            ListPlace::Jobs(Some(Cursor(9))),
        ] {
            assert_eq!(ListPlace::parse(&place.text()), Some(place));
        }
        for bad in ["", "r", "x1", "j-1"] {
            assert_eq!(ListPlace::parse(bad), None, "{bad}");
        }
    }
}
