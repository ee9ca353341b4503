//! The socket's messages as AsyncAPI 3, made from the types that are sent and read.
//!
//! A page of messages written beside the code says what was meant. This one is made of the types, a test holds the published one against it, and each
//! message that a system test receives is held against its schema.

use axum::Json;
use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::books::BookMessage;
use crate::socket::Told;
use crate::watching::{MarketChannel, MarketMessage, MarketNot};
use crate::wishes::Wish;

/// What the document is made of.
#[derive(Default)]
struct Parts {
    schemas: Map<String, Value>,
    messages: Map<String, Value>,
}

impl Parts {
    /// The schema of a type, with those that it refers to.
    fn schema<T: ToSchema + PartialSchema>(&mut self) -> Value {
        let mut used: Vec<(String, RefOr<Schema>)> = Vec::new();
        T::schemas(&mut used);
        for (name, schema) in used {
            self.schemas.insert(name, plain(&schema));
        }
        plain(&T::schema())
    }

    fn message(&mut self, name: &str, payload: Value) {
        self.messages.insert(name.to_owned(), json!({ "name": name, "payload": payload }));
    }

    /// One message for each variant of an enum that says in `channel` which it is.
    fn variants<T: ToSchema + PartialSchema>(&mut self) {
        let schema = self.schema::<T>();
        for variant in schema["oneOf"].as_array().into_iter().flatten() {
            let name = channel_of(variant).expect("each says its channel").to_owned();
            self.message(&name, variant.clone());
        }
    }
}

fn plain(schema: &RefOr<Schema>) -> Value {
    serde_json::to_value(schema).expect("a schema is plain")
}

/// The channel that a schema wants to be named.
fn channel_of(schema: &Value) -> Option<&str> {
    let own = schema["properties"]["channel"]["enum"][0].as_str();
    own.or_else(|| schema["allOf"].as_array()?.iter().find_map(channel_of))
}

fn of_channel(messages: &[String]) -> Vec<Value> {
    messages.iter().map(|name| json!({ "$ref": format!("#/channels/socket/messages/{name}") })).collect()
}

/// All messages, and the names of those that the server says.
fn messages() -> (Parts, Vec<String>) {
    let mut parts = Parts::default();
    parts.variants::<Told>();
    parts.variants::<MarketMessage>();
    let book = parts.schema::<BookMessage<'_>>();
    parts.message("book", book);
    for not in MarketChannel::NOT {
        let schema = parts.schema::<MarketNot>();
        parts.message(not, schema);
    }
    let told: Vec<String> = parts.messages.keys().cloned().collect();
    let wish = parts.schema::<Wish>();
    parts.message("subscribe", wish);
    (parts, told)
}

/// The only channel there is.
fn channel(messages: &Map<String, Value>) -> Value {
    let named = |name: &String| (name.clone(), json!({ "$ref": format!("#/components/messages/{name}") }));
    let messages: Map<String, Value> = messages.keys().map(named).collect();
    json!({
        "address": "/v1/socket",
        "description": "A WebSocket, opened with the bearer's token.",
        "messages": messages,
        "bindings": { "ws": { "method": "GET" } },
    })
}

fn made() -> Value {
    let (Parts { schemas, messages }, told) = messages();
    let socket = json!({ "$ref": "#/channels/socket" });
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Pares exchange",
            "version": "1",
            "description": "docs/protocols/http.md, WebSocket, says what a document of fields cannot.",
        },
        "defaultContentType": "application/json",
        "channels": { "socket": channel(&messages) },
        "operations": {
            "hear": { "action": "receive", "channel": socket, "messages": of_channel(&["subscribe".to_owned()]) },
            "tell": { "action": "send", "channel": socket, "messages": of_channel(&told) },
        },
        "components": {
            "messages": messages,
            "schemas": schemas,
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    })
}

/// What the socket says and hears, as AsyncAPI 3.
#[must_use]
pub fn asyncapi() -> String {
    serde_json::to_string_pretty(&made()).expect("the document is plain") + "\n"
}

/// The document of the socket's messages.
#[utoipa::path(get, path = "/v1/asyncapi.json", operation_id = "asyncapi", tag = "server", security(()), responses((status = 200, description = "AsyncAPI 3")))]
pub(crate) async fn served() -> Json<Value> {
    Json(made())
}
