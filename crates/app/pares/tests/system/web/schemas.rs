//! What a socket says, held against the published document of its messages.

use std::sync::LazyLock;

use serde_json::Value;

use super::clients::published;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let text = std::fs::read_to_string(published("docs/protocols/http-asyncapi.json")).unwrap();
    serde_json::from_str(&text).unwrap()
});

/// A message of the channel that it names, as the document has it.
pub(super) fn check(told: &Value) {
    let channel = told["channel"].as_str().unwrap_or_default();
    let payload = &DOCUMENT["components"]["messages"][channel]["payload"];
    assert!(payload.is_object(), "the document has no message {channel}");
    if let Err(why) = fits(payload, told) {
        panic!("{why}: {told}");
    }
}

/// As much of JSON Schema as the document uses.
fn fits(schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(path) = schema["$ref"].as_str() {
        return fits(DOCUMENT.pointer(path.trim_start_matches('#')).ok_or(path)?, value);
    }
    for part in list(schema, "allOf") {
        fits(part, value)?;
    }
    if let Some(parts) = schema["oneOf"].as_array() {
        let fitting = parts.iter().filter(|part| fits(part, value).is_ok()).count();
        (fitting == 1).then_some(()).ok_or_else(|| format!("{fitting} of {schema} fit"))?;
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return Err(format!("{value} is none of {}", schema["enum"]));
    }
    is_of_kind(schema, value)?;
    for name in list(schema, "required") {
        value.get(name.as_str().unwrap()).ok_or_else(|| format!("{name} is missing"))?;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            fits(property, value).map_err(|why| format!("{name}: {why}"))?;
        }
    }
    for item in value.as_array().into_iter().flatten().filter(|_| schema["items"].is_object()) {
        fits(&schema["items"], item)?;
    }
    Ok(())
}

fn list<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    schema[name].as_array().into_iter().flatten()
}

fn is_of_kind(schema: &Value, value: &Value) -> Result<(), String> {
    let kinds = match &schema["type"] {
        Value::Null => return Ok(()),
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    kinds.iter().any(|kind| kind == is).then_some(()).ok_or_else(|| format!("{value} is none of {kinds:?}"))
}

#[test]
fn what_does_not_fit_is_found() {
    let beat = serde_json::json!({ "channel": "heartbeat", "count": 1 });
    let payload = &DOCUMENT["components"]["messages"]["heartbeat"]["payload"];
    assert_eq!(fits(payload, &beat), Ok(()));
    for wrong in [
        r#"{"channel":"heartbeat"}"#,
        r#"{"channel":"heartbeat","count":"1"}"#,
        r#"{"channel":"x","count":1}"#,
    ] {
        assert!(fits(payload, &serde_json::from_str(wrong).unwrap()).is_err(), "{wrong}");
    }
}
