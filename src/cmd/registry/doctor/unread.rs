//! Declarations that nobody reads: those that make strict readers refuse the document, and those that count no more.
use super::{Divergence, named};
use serde_json::Value;
use stado_fleet::document::Document;

/// Where the strict readers of older builds refuse a key that they do not know (§1.3): such a key costs those hosts every
/// route. Elsewhere unknown keys belong to other systems and do no harm.
fn is_strict(path: &str) -> bool {
    path.starts_with("service_directory.") || path.contains(".service_resolver.")
}

pub(super) fn declarations(document: &Document) -> Vec<Divergence> {
    let unknown = document.unknown_keys().into_iter().filter(|path| is_strict(path)).map(|path| Divergence {
        finding: "unread-declaration",
        detail: format!(
            "{path} is a key that this build does not read, and older resolvers refuse the document over it"
        ),
        remedy: format!("remove it with its feature, or keep it only while every host of the fleet reads {path}"),
        subject: path,
    });
    unknown.chain(ignored(document)).collect()
}

/// `idle_seconds` was read once; it cut slow answers, and no build counts it any more.
fn ignored(document: &Document) -> impl Iterator<Item = Divergence> {
    named(document, "targets").flat_map(|(target, entry)| {
        let adapters = entry.pointer("/service_resolver/adapters").and_then(Value::as_array).into_iter().flatten();
        adapters.enumerate().filter(|(_, adapter)| adapter.get("idle_seconds").is_some()).map(move |(i, _)| {
            let subject = format!("targets[{target}].service_resolver.adapters[{i}].idle_seconds");
            Divergence {
                finding: "unread-declaration",
                detail: format!("{subject} is accepted and ignored: a connection ends when one of its ends closes it"),
                remedy: "remove the key, unless a resolver from before October 2026 still reads it".to_owned(),
                subject,
            }
        })
    })
}
