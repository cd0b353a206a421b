//! The JSON Schema of a workflow's arguments: it checks them, and models see it as the schema of the property `arguments`.

use std::error::Error;
use std::fmt;

use boon::{Compiler, Draft, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use outlast_core::WorkflowRequest;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use crate::reply::Refusal;
use crate::text::printable;

/// The location under which a schema is compiled, and the base of relative references in it. Nothing is ever loaded from
/// there.
const LOCATION: &str = "outlast:///input-schema";
const BASE: &str = "outlast:///";
/// The maximum number of characters in an error sentence.
const MAX_SENTENCE_CHARS: usize = 300;
/// The position of the schema in the schema of a tool.
const EMBEDDED_AT: &str = "#/properties/arguments";

/// The schema of a workflow's arguments.
pub struct InputSchema {
    document: Value,
    /// `None` for a schema that is shown but not checked.
    compiled: Option<(Schemas, SchemaIndex)>,
    /// The argument that receives a job's message.
    message_argument: Option<String>,
}

impl InputSchema {
    /// Compiles a schema, or returns the reason that it is invalid. References to other documents are refused: nothing is
    /// loaded.
    pub fn new(document: Value) -> Result<Self, String> {
        let compiled = compile(&document)?;
        let schema = Self { document, compiled: Some(compiled), message_argument: None };
        // The library finds a cycle of references only when it checks a value.
        match schema.problem(&json!({})) {
            Some(ArgumentProblem { is_cycle: true, sentence, .. }) => Err(sentence),
            Some(_) | None => Ok(schema),
        }
    }

    /// Wraps a schema of another server, whose dialect may be unsupported: it is shown unchanged, and checked only if it
    /// compiles.
    pub fn of_server(document: Value) -> Self {
        Self::new(document.clone()).unwrap_or_else(|why| {
            tracing::warn!(
                why,
                "the schema of a tool cannot be used; its server checks the arguments alone"
            );
            Self { document, compiled: None, message_argument: None }
        })
    }

    /// Sets the argument that receives the workflow's message.
    #[must_use]
    pub fn with_message_argument(mut self, name: Option<String>) -> Self {
        self.message_argument = name;
        self
    }

    /// Returns the original schema.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Checks the request of a job; returns a sentence that names the wrong field.
    pub fn check(&self, ask: &WorkflowRequest) -> Result<(), String> {
        let mut arguments = ask.arguments.clone();
        if let (Some(name), Some(message)) = (&self.message_argument, &ask.message) {
            arguments.insert(name.clone(), Value::String(message.clone()));
        }
        match self.problem(&Value::Object(arguments)) {
            Some(ArgumentProblem { sentence, .. }) => Err(sentence),
            None => Ok(()),
        }
    }

    pub(super) fn check_call(
        &self,
        message: Option<&str>,
        arguments: &JsonObject,
    ) -> Result<(), Refusal> {
        let ask = WorkflowRequest {
            message: message.map(str::to_owned),
            arguments: arguments.clone(),
            ..WorkflowRequest::default()
        };
        self.check(&ask).map_err(Refusal::validation)
    }

    /// Returns the schema of the property `arguments`. The argument that receives the message is not required there, because
    /// the message can provide it.
    pub(super) fn as_property(&self) -> Value {
        let mut property = self.document.clone();
        let Value::Object(members) = &mut property else { return json!({ "type": "object" }) };
        // Allowed only at the root of a document.
        members.remove("$schema");
        members.entry("type").or_insert_with(|| json!("object"));
        members.entry("description").or_insert_with(|| json!("Arguments of the workflow."));
        if let (Some(name), Some(Value::Array(required))) =
            (&self.message_argument, members.get_mut("required"))
        {
            required.retain(|required| required != name.as_str());
            if required.is_empty() {
                members.remove("required");
            }
        }
        // A document with an `$id` keeps its own base, even when it is embedded.
        if !members.contains_key("$id") {
            move_references(&mut property);
        }
        property
    }

    /// Returns true if a call without `arguments` is always invalid.
    pub(super) fn needs_arguments(&self) -> bool {
        let required = self.document.get("required").and_then(Value::as_array);
        let other = |name: &Value| name.as_str() != self.message_argument.as_deref();
        required.is_some_and(|required| required.iter().any(other))
    }

    fn problem(&self, arguments: &Value) -> Option<ArgumentProblem> {
        let (schemas, index) = self.compiled.as_ref()?;
        let error = schemas.validate(arguments, *index).err()?;
        Some(ArgumentProblem::of(innermost(&error)))
    }
}

impl fmt::Debug for InputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InputSchema").field(&self.document).finish()
    }
}

impl PartialEq for InputSchema {
    fn eq(&self, other: &Self) -> bool {
        (&self.document, &self.message_argument) == (&other.document, &other.message_argument)
    }
}

impl Eq for InputSchema {}

/// The reason that arguments are invalid.
struct ArgumentProblem {
    sentence: String,
    is_cycle: bool,
}

impl ArgumentProblem {
    fn of(error: &ValidationError<'_, '_>) -> Self {
        let place = place(&error.instance_location.to_string());
        let sentence = match &error.kind {
            ErrorKind::Required { want } => match want.as_slice() {
                [one] => format!("{place}.{one} is missing"),
                several => {
                    let named: Vec<String> =
                        several.iter().map(|name| format!("{place}.{name}")).collect();
                    format!("{} are missing", named.join(", "))
                }
            },
            ErrorKind::AdditionalProperties { got } => match got.as_slice() {
                [] => format!("{place} has unknown properties"),
                [first, ..] => format!("{place}.{first} is not known"),
            },
            ErrorKind::RefCycle { .. } => "its references form a cycle".to_owned(),
            // Their default texts include the value, which may be long or confidential.
            ErrorKind::Pattern { want, .. } => format!("{place} must match the pattern {want}"),
            ErrorKind::Format { want, .. } => format!("{place} must be a valid {want}"),
            kind => format!("{place}: {kind}"),
        };
        let sentence = printable(&sentence).chars().take(MAX_SENTENCE_CHARS).collect();
        Self { sentence, is_cycle: matches!(error.kind, ErrorKind::RefCycle { .. }) }
    }
}

/// Returns the first leaf cause.
fn innermost<'a, 's, 'v>(error: &'a ValidationError<'s, 'v>) -> &'a ValidationError<'s, 'v> {
    error.causes.first().map_or(error, innermost)
}

/// Formats `/items/0/name` as `arguments.items[0].name`.
fn place(pointer: &str) -> String {
    let mut place = "arguments".to_owned();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let is_index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        place.push_str(&if is_index { format!("[{part}]") } else { format!(".{part}") });
    }
    place
}

fn compile(document: &Value) -> Result<(Schemas, SchemaIndex), String> {
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    compiler.use_loader(Box::new(NoLoader));
    let mut schemas = Schemas::new();
    if let Err(error) = compiler.add_resource(LOCATION, document.clone()) {
        return Err(explain(&format!("{error:#}")));
    }
    match compiler.compile(LOCATION, &mut schemas) {
        Ok(index) => Ok((schemas, index)),
        Err(error) => Err(explain(&format!("{error:#}"))),
    }
}

/// Returns the last informative line, without the internal location of the document.
fn explain(error: &str) -> String {
    let detail = error.lines().rfind(|line| line.trim_start().starts_with("- at "));
    let line = detail.or(error.lines().next()).unwrap_or_default();
    let line = line.trim_start().trim_start_matches("- ").replace(LOCATION, "").replace(BASE, "");
    printable(&line).chars().take(MAX_SENTENCE_CHARS).collect()
}

/// Refuses every document except the schema itself: reads no file and makes no request.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, _url: &str) -> Result<Value, Box<dyn Error>> {
        Err("references to other documents are not followed".into())
    }
}

/// Rewrites references to the root so that they point to the place where the schema is embedded.
fn move_references(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), &mut *member) {
                    ("$ref" | "$dynamicRef", Value::String(target)) => {
                        if let Some(rest) = target.strip_prefix('#')
                            && (rest.is_empty() || rest.starts_with('/'))
                        {
                            *target = format!("{EMBEDDED_AT}{rest}");
                        }
                    }
                    // Data, not schemas.
                    ("const" | "enum" | "default" | "examples", _) => {}
                    _ => move_references(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(schema: Value, arguments: Value) -> Result<(), String> {
        let Value::Object(arguments) = arguments else { panic!("not an object") };
        let schema = InputSchema::new(schema).unwrap();
        schema.check(&WorkflowRequest { arguments, ..WorkflowRequest::default() })
    }

    #[test]
    fn every_mistake_names_its_field() {
        let schema = json!({
            "type": "object",
            "properties": {
                "count": { "type": "integer", "minimum": 3 },
                "mode": { "enum": ["fast", "slow"] },
                "code": { "type": "string", "pattern": "^[a-z]+$" },
                "items": { "type": "array", "items": { "$ref": "#/$defs/item" } },
                "a/b": { "type": "string" }
            },
            "required": ["count"],
            "additionalProperties": false,
            "$defs": { "item": { "type": "object", "required": ["name", "size"] } }
        });
        let cases = [
            (json!({ "count": 3 }), Ok(())),
            (json!({}), Err("arguments.count is missing")),
            (json!({ "count": 1 }), Err("arguments.count: must be >=3, but got 1")),
            (json!({ "count": 3, "z": 1 }), Err("arguments.z is not known")),
            (
                json!({ "count": 3, "code": "Hunter" }),
                Err("arguments.code must match the pattern ^[a-z]+$"),
            ),
            (
                json!({ "count": 3, "items": [{ "name": 1 }] }),
                Err("arguments.items[0].size is missing"),
            ),
            (
                json!({ "count": 3, "items": [{}] }),
                Err("arguments.items[0].name, arguments.items[0].size are missing"),
            ),
            (json!({ "count": 3, "a/b": 1 }), Err("arguments.a/b: want string, but got number")),
        ];
        for (arguments, expected) in cases {
            let expected = expected.map_err(str::to_owned);
            assert_eq!(said(schema.clone(), arguments.clone()), expected, "{arguments}");
        }
        let mode = said(schema, json!({ "count": 3, "mode": "x" })).unwrap_err();
        assert!(mode.starts_with("arguments.mode: "), "{mode}");
    }

    #[test]
    fn a_schema_that_is_wrong_or_refers_elsewhere_is_refused() {
        for (schema, why) in [
            (json!({ "type": "objekt" }), "at '/type'"),
            (json!([1]), "boolean or object"),
            (json!({ "$ref": "https://elsewhere.example/schema.json" }), "not followed"),
            (json!({ "$ref": "file:///etc/passwd" }), "not followed"),
            (json!({ "$ref": "other.json#/$defs/x" }), "not followed"),
            (json!({ "$schema": "https://elsewhere.example/dialect" }), "not followed"),
            (json!({ "$ref": "#/$defs/none" }), ""),
            (json!({ "$ref": "#" }), "cycle"),
            (
                json!({ "allOf": [{ "$ref": "#/$defs/a" }], "$defs": { "a": { "$ref": "#" } } }),
                "cycle",
            ),
            (json!({ "properties": { "a": { "pattern": "(" } } }), "pattern"),
        ] {
            let refused = InputSchema::new(schema.clone()).unwrap_err();
            assert!(refused.contains(why), "{schema}: {refused}");
            assert!(!refused.contains("outlast:"), "{refused}");
        }
        // A schema of another server is still shown.
        let odd = json!({ "type": "object", "properties": { "a": { "pattern": "(?=x)" } } });
        let schema = InputSchema::of_server(odd.clone());
        assert_eq!(schema.document(), &odd);
        let arguments = JsonObject::from_iter([("a".to_owned(), json!("anything"))]);
        assert_eq!(
            schema.check(&WorkflowRequest { arguments, ..WorkflowRequest::default() }),
            Ok(())
        );
    }

    #[test]
    fn a_schema_fits_into_the_schema_of_a_tool() {
        let schema = InputSchema::new(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": { "x": { "$ref": "#/$defs/x" }, "y": { "const": { "$ref": "#/$defs/x" } } },
            "required": ["query"],
            "$defs": { "x": { "items": { "$ref": "#" } } }
        }));
        let schema = schema.unwrap().with_message_argument(Some("query".to_owned()));
        let shown = schema.as_property();
        let expected = json!({
            "type": "object",
            "description": "Arguments of the workflow.",
            "properties": {
                "x": { "$ref": "#/properties/arguments/$defs/x" },
                "y": { "const": { "$ref": "#/$defs/x" } }
            },
            "$defs": { "x": { "items": { "$ref": "#/properties/arguments" } } }
        });
        assert_eq!(shown, expected);
        assert!(!schema.needs_arguments());
        // The message provides the argument.
        let ask =
            WorkflowRequest { message: Some("why?".to_owned()), ..WorkflowRequest::default() };
        assert_eq!(schema.check(&ask), Ok(()));
        assert_eq!(
            schema.check(&WorkflowRequest::default()),
            Err("arguments.query is missing".to_owned())
        );
    }
}
