//! `openapi.json`: made of the endpoints and of the types of their answers. `UPDATE=1 cargo test -p console
//! documentation` writes it anew.

use crate::endpoints::{ENDPOINTS, Endpoint};
use crate::views;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Where the schema of an answer is.
fn answer(endpoint: &Endpoint, schemas: &mut SchemaGenerator) -> Value {
    let schema = match endpoint.path {
        "/api/v1/overview" => schemas.subschema_for::<views::overview::Overview>(),
        "/api/v1/routes" => schemas.subschema_for::<views::routes::Routes<'_>>(),
        "/api/v1/route" => schemas.subschema_for::<views::route::Details<'_>>(),
        "/api/v1/problems" => schemas.subschema_for::<views::problems::Problems>(),
        "/api/v1/certificates" => schemas.subschema_for::<views::certificates::Certificates>(),
        "/api/v1/changes" => schemas.subschema_for::<views::changes::Generations>(),
        "/api/v1/limits" => schemas.subschema_for::<views::limits::Limits>(),
        "/api/v1/shadow" => schemas.subschema_for::<views::shadow::Shadow>(),
        "/api/v1/trace" => schemas.subschema_for::<views::trace::Trace>(),
        "/api/v1/explain" => schemas.subschema_for::<crate::explained::Explained>(),
        other => panic!("{other} has no type: name it here"),
    };
    schema.to_value()
}

fn path(endpoint: &Endpoint, schemas: &mut SchemaGenerator) -> Value {
    let parameters = endpoint.parameters.iter().map(|parameter| {
        json!({"name": parameter.name, "in": "query", "description": parameter.about, "schema": {"type": "string"}})
    });
    let failure = json!({"$ref": "#/components/responses/failure"});
    json!({"get": {
        "summary": endpoint.about,
        "parameters": parameters.collect::<Vec<_>>(),
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {"application/json": {"schema": answer(endpoint, schemas)}},
            },
            "default": failure,
        },
    }})
}

fn description() -> String {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.for_serialize().into_generator();
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        paths.insert(endpoint.path.to_owned(), path(endpoint, &mut schemas));
    }
    paths.insert(crate::events::PATH.to_owned(), json!({"get": {
        "summary": "Server-Sent Events: `change` when something is in force or a problem appeared, `beat` every 5 s.",
        "responses": {"200": {
            "description": "A stream. The data of each event is an object with the number of the newest generation.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }},
    }}));
    let failure = json!({
        "description": "Why there is no answer, and what to do: 400, 404, 429 or 503. 401 and 403 are plain text.",
        "content": {"application/json": {"schema": {
            "type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"],
        }}},
    });
    let whole = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Fairway's console",
            "version": "1",
            "description": "Read-only. Times are seconds since 1970, rates are per second, latencies are seconds.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "responses": {"failure": failure},
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "Fairway-Token"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{}, {"token": []}, {"bearer": []}],
    });
    let mut text = serde_json::to_string_pretty(&whole).expect("JSON");
    text.push('\n');
    text
}

#[test]
fn the_description_of_the_api_is_that_of_its_types() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/openapi.json");
    let wanted = description();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &wanted).expect("it is written");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == wanted,
        "src/openapi.json is stale: UPDATE=1 cargo test -p console documentation"
    );
}
