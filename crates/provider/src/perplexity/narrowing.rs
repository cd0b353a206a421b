//! The filters of a web search as the vendor names them; a filter that is not set is not sent.

use outlast_core::SearchFilters;
use serde_json::{Value, json};

/// The object without the fields that are not set: null, or an empty list or object.
pub(super) fn set_fields(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| ![json!(null), json!([]), json!({})].contains(value));
    }
    object
}

/// The filters that every endpoint has.
pub(super) fn filters(filters: &SearchFilters) -> Value {
    set_fields(json!({
        "search_recency_filter": filters.recency,
        "search_domain_filter": filters.domains,
        "search_after_date_filter": filters.after,
        "search_before_date_filter": filters.before,
    }))
}

/// A body of the Sonar and the Search endpoints, which have one filter more, and all of them next to their own fields.
pub(super) fn narrowed(mut body: Value, narrowed_to: &SearchFilters) -> Value {
    body["search_mode"] = narrowed_to.academic.then_some("academic").into();
    if let (Some(fields), Value::Object(more)) = (body.as_object_mut(), filters(narrowed_to)) {
        fields.extend(more);
    }
    set_fields(body)
}

/// The user's location.
pub(super) fn location(filters: &SearchFilters) -> Option<Value> {
    filters.country.as_ref().map(|country| json!({"country": country}))
}
