//! `docs/schemas`: a schema for every output that is JSON, and what the built programs print, held to them.
mod directory;
mod fleet;
mod joining;
mod mesh;
mod placement;
mod registry;
mod samples;

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schemas");
/// Shapes that several outputs have; nothing prints them alone.
const SHARED: &str = "common";
/// Which outputs each story shows.
const STORIES: [&[&str]; 6] =
    [mesh::SHOWN, directory::SHOWN, registry::SHOWN, fleet::SHOWN, placement::SHOWN, joining::SHOWN];

fn schemas() -> Vec<(String, Value)> {
    let files = std::fs::read_dir(FOLDER).unwrap().map(|file| file.unwrap().path());
    let read = |file: &Path| (file.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read(file).unwrap());
    let parsed = |(name, bytes): (String, Vec<u8>)| {
        let schema = serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        (name, schema)
    };
    files.map(|file| parsed(read(&file))).collect()
}

#[test]
fn every_verb_that_prints_json_has_a_schema_and_a_story() {
    let printed = samples::outputs();
    let written: BTreeSet<String> = schemas().into_iter().map(|(name, _)| name).filter(|name| name != SHARED).collect();
    assert_eq!(written, printed, "left: docs/schemas; right: what the programs can print");
    let shown: BTreeSet<String> = STORIES.concat().into_iter().map(str::to_owned).collect();
    assert_eq!(shown, printed, "left: the stories; right: what the programs can print");
}

#[test]
fn every_property_is_described_and_only_what_is_said_to_be_absent_may_be() {
    for (name, schema) in schemas() {
        for key in ["$schema", "title", "description"] {
            assert!(schema[key].is_string(), "{name} has no {key}");
        }
        described(&name, &schema);
    }
}

/// Every object of a schema, at any depth: closed or openly open, and each property with a description.
fn described(place: &str, schema: &Value) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let open = schema.get("$comment").and_then(Value::as_str).is_some_and(|why| why.starts_with("open: "));
        assert!(open || schema["additionalProperties"] == false, "{place} takes any key");
        let required: Vec<&str> = schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for (key, property) in properties {
            let about = property["description"].as_str().unwrap_or_default();
            let there = required.contains(&key.as_str());
            // What is shared describes itself where it is.
            assert!(!about.is_empty() || (there && property.get("$ref").is_some()), "{place}.{key} is not described");
            assert!(there || about.contains("absent"), "{place}.{key} may be absent, and it does not say when");
        }
    }
    match schema {
        Value::Object(inner) => inner.iter().for_each(|(key, inner)| described(&format!("{place}.{key}"), inner)),
        Value::Array(inner) => inner.iter().for_each(|inner| described(place, inner)),
        _ => {}
    }
}
