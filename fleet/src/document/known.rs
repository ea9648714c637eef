//! Which keys this build knows, so that the others can be named. A key that is not here is kept, and only reported.
use serde_json::Value;

/// The known keys of one place of the document.
enum Shape {
    /// Anything; nothing below is looked at.
    Any,
    /// An object with these keys.
    Keys(&'static [(&'static str, &'static Shape)]),
    /// A list of one shape.
    Each(&'static Shape),
    /// An object whose keys are names, each with this shape.
    Named(&'static Shape),
}
use Shape::{Any, Each, Keys, Named};

static REGISTRY: Shape = Keys(&[
    ("schema_version", &Any),
    ("targets", &Each(&TARGET)),
    ("coordinators", &Each(&COORDINATOR)),
    ("service_directory", &DIRECTORY),
    ("empty_directory", &EMPTY_DIRECTORY),
    ("placement_profiles", &Each(&PROFILE)),
    ("placement_transactions", &Each(&TRANSACTION)),
    ("fleets", &Each(&Keys(&[("name", &Any), ("notes", &Any)]))),
    ("enrollment", &ENROLLMENT),
    ("channels", &Keys(&[("control_plane", &Any), ("notes", &Any)])),
    ("fleet_queue_namespace", &Any),
    ("release_control", &Any),
    ("succession", &Keys(&[("epoch", &Any), ("standbys", &Any), ("after", &Any), ("since", &Any)])),
]);
static TARGET: Shape = Keys(&[
    ("name", &Any),
    ("kind", &Any),
    ("release_platform", &Any),
    ("ssh", &Any),
    ("ssh_fallbacks", &Each(&Keys(&[("name", &Any), ("destination", &Any)]))),
    ("ssh_key_target", &Any),
    ("hostnames", &Any),
    ("role", &Any),
    ("host_heuristic", &Any),
    ("fleet", &Any),
    ("managed_versions", &Any),
    ("services", &Each(&UNIT)),
    ("service_resolver", &RESOLVER),
    ("work_root", &Any),
    ("stado_command", &Any),
    ("ssh_host_keys", &Any),
    ("resolver_keys", &Any),
    ("use", &Keys(&[("consumers", &Any)])),
]);
static UNIT: Shape = Keys(&[
    ("name", &Any),
    ("kind", &Any),
    ("label", &Any),
    ("unit", &Any),
    ("path", &Any),
    ("managed_since", &Any),
    ("mesh", &Any),
    ("hostname", &Any),
    ("app_protocol", &Any),
]);
static RESOLVER: Shape =
    Keys(&[("api_bind", &Any), ("refresh_seconds", &Any), ("max_stale_seconds", &Any), ("adapters", &Each(&ADAPTER))]);
static ADAPTER: Shape =
    Keys(&[("service", &Any), ("consumer", &Any), ("bind", &Any), ("idle_seconds", &Any), ("connect_seconds", &Any)]);
static COORDINATOR: Shape = Keys(&[
    ("name", &Any),
    ("runtime", &Any),
    ("host", &Any),
    ("host_heuristic", &Any),
    ("interval_seconds", &Any),
    ("state_uri", &Any),
    ("active", &Any),
    ("notes", &Any),
]);
static DIRECTORY: Shape = Keys(&[
    ("authority", &Keys(&[("target", &Any), ("command", &Any)])),
    ("generation", &Any),
    ("services", &Named(&SERVICE)),
]);
static EMPTY_DIRECTORY: Shape =
    Keys(&[("authority", &Keys(&[("target", &Any), ("command", &Any)])), ("generation", &Any)]);
static SERVICE: Shape = Keys(&[
    ("managed_service", &Any),
    ("placement_profile", &Any),
    ("active_host", &Any),
    ("endpoints", &Named(&ENDPOINT)),
    ("standby", &Named(&ENDPOINT)),
    ("consumers", &Named(&CONSUMER)),
    ("verify", &Keys(&[("kind", &Any), ("from", &Any), ("expect", &Any)])),
    ("declaration", &DECLARATION),
    ("port", &Any),
    ("scheme", &Any),
]);
static ENDPOINT: Shape = Keys(&[("url", &Any), ("release_id", &Any), ("source_revision", &Any), ("base_path", &Any)]);
static CONSUMER: Shape = Keys(&[("capabilities", &Any), ("grants", &Each(&GRANT))]);
static GRANT: Shape = Keys(&[("consumer", &Any), ("capabilities", &Any), ("token_file", &Any), ("audience", &Any)]);
static DECLARATION: Shape = Keys(&[
    ("source", &Keys(&[("artifact", &Any), ("sha256", &Any)])),
    ("run", &Keys(&[("program", &Any), ("args", &Any), ("env", &Any)])),
]);
static PROFILE: Shape = Keys(&[
    ("name", &Any),
    ("services", &Any),
    ("stop_order", &Any),
    ("start_order", &Any),
    ("state", &Each(&Keys(&[("path", &Any), ("required", &Any), ("root", &Any), ("tree", &Any)]))),
    (
        "hosts",
        &Named(&Keys(&[
            ("units", &Any),
            ("probes", &Each(&Keys(&[("service", &Any), ("url", &Any), ("seconds", &Any)]))),
        ])),
    ),
    ("routing", &Each(&Keys(&[("host", &Any), ("unit", &Any), ("active_when_destination", &Any)]))),
]);
static TRANSACTION: Shape =
    Keys(&[("id", &Any), ("profile", &Any), ("from_host", &Any), ("to_host", &Any), ("started_at", &Any)]);
static ENROLLMENT: Shape = Keys(&[
    ("allow_join", &Any),
    ("allow_enroll", &Any),
    ("allow_invite", &Any),
    ("allow_adopt", &Any),
    ("require_verified_hostname", &Any),
    ("key_custody", &Any),
]);

/// Paths of the keys that are not known, in document order. Elements of lists are named by their `name` where they have one.
pub(super) fn unknown_keys(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(document, &REGISTRY, &mut String::new(), &mut found);
    found
}

fn walk(value: &Value, shape: &Shape, path: &mut String, found: &mut Vec<String>) {
    match (shape, value) {
        (Keys(known), Value::Object(map)) => {
            for (key, inner) in map {
                let shape = known.iter().find(|(name, _)| name == key).map(|(_, shape)| *shape);
                step(path, &dotted(path, key), |path| match shape {
                    Some(shape) => walk(inner, shape, path, found),
                    None => found.push(path.clone()),
                });
            }
        }
        (Named(shape), Value::Object(map)) => {
            for (key, inner) in map {
                step(path, &dotted(path, key), |path| walk(inner, shape, path, found));
            }
        }
        (Each(shape), Value::Array(list)) => {
            for (i, inner) in list.iter().enumerate() {
                let name = inner.get("name").and_then(Value::as_str).filter(|n| !n.is_empty());
                let part = name.map_or_else(|| format!("[{i}]"), |n| format!("[{n}]"));
                step(path, &part, |path| walk(inner, shape, path, found));
            }
        }
        _ => {}
    }
}

fn dotted(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!(".{key}") }
}

fn step(path: &mut String, part: &str, inside: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push_str(part);
    inside(path);
    path.truncate(length);
}
