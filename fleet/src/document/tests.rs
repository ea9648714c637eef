use super::*;
use crate::fixture::{EXAMPLES, any_document, example, example_path, fleet, valid};
use proptest::prelude::*;
use serde_json::json;

fn parse(text: &str) -> Result<Document, DocumentError> {
    Document::parse(text.as_bytes())
}

fn duplicates(text: &str) -> Vec<String> {
    parse(text).unwrap().duplicate_keys().iter().map(|d| format!("{}: {}", d.location, d.key)).collect()
}

#[test]
fn an_unedited_document_passes_as_its_bytes() {
    for name in EXAMPLES {
        let bytes = std::fs::read(example_path(name)).unwrap();
        assert_eq!(Document::parse(bytes.clone()).unwrap().bytes(), bytes, "{name}");
    }
}

/// With `STADO_UPDATE_EXAMPLES` set, writes the file instead.
#[test]
fn the_large_example_is_what_the_helper_makes() {
    let made = Document::from_value(fleet(50, 250));
    if std::env::var_os("STADO_UPDATE_EXAMPLES").is_some() {
        std::fs::write(example_path("large"), made.bytes()).unwrap();
    }
    assert!(
        example("large").bytes() == made.bytes(),
        "examples/registries/large.json differs; set STADO_UPDATE_EXAMPLES=1"
    );
}

#[test]
fn numbers_keep_their_text_through_a_rewrite() {
    let numbers = ["1.50", "1E+3", "18446744073709551616", "-0.0", "1e3", "-2.5E-7", "0"];
    let lines: Vec<String> = numbers.iter().enumerate().map(|(i, n)| format!("  \"1e{i}\": {n}")).collect();
    let text = format!("{{\n{}\n}}\n", lines.join(",\n"));
    let read = parse(&text).unwrap();
    assert_eq!(std::str::from_utf8(Document::from_value(read.value().clone()).bytes()).unwrap(), text);
}

#[test]
fn duplicate_keys_are_found_where_they_are() {
    assert_eq!(duplicates(r#"{"a":1,"b":{"a":2}}"#), Vec::<String>::new());
    assert_eq!(duplicates(r#"{"a":1,"a":2,"a":3}"#), ["registry: a"]);
    assert_eq!(duplicates(r#"{"t":[{"x":1},{"y":{"z":1,"q":[],"z":2}}]}"#), ["registry.t[1].y: z"]);
    assert_eq!(duplicates(r#"{"a":{"k":[1,2]},"b":[[{"é":1,"\u00e9":2}]]}"#), ["registry.b[0][0]: é"]);
    assert_eq!(duplicates(r#"{"s":"{\"a\":1,\"a\":2}","n":{"b,":1,"b:":2}}"#), Vec::<String>::new());
}

#[test]
fn a_duplicate_among_many_keys_is_found() {
    let keys: Vec<String> = (0..50).chain([7]).map(|i| format!("\"k{i}\":{{\"k{i}\":{i}}}")).collect();
    assert_eq!(duplicates(&format!("{{{}}}", keys.join(","))), ["registry: k7"]);
}

#[test]
fn what_is_no_document_is_refused_with_its_reason() {
    let sentence = |bytes: &[u8]| Document::parse(bytes).unwrap_err().to_string();
    assert!(sentence(b"").contains("not valid JSON"));
    assert!(sentence(b"{\"a\":1").contains("not valid JSON"));
    assert!(sentence(b"{} {}").contains("not valid JSON"));
    assert!(sentence(b"{\"a\":\"\xff\"}").contains("not UTF-8"));
    assert_eq!(sentence(b"[]"), "registry: must be an object");
    assert!(sentence(br#"{"a":{"$serde_json::private::Number":"1"}}"#).contains("reserved key"));
    assert!(sentence(br#"{"\u0024serde_json::private::RawValue":"[]"}"#).contains("reserved key"));
}

#[test]
fn depth_and_size_are_limited_without_touching_the_stack() {
    for open in ["[", "{\"a\":"] {
        let text = format!("{{\"a\":{}", open.repeat(1_000_000));
        assert!(parse(&text).unwrap_err().to_string().contains("nests deeper than 100 levels"));
    }
    let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse(&deep(MAX_DEPTH - 1)).is_ok());
    assert!(parse(&deep(MAX_DEPTH)).is_err());
    let too_large = Document::parse_within(b"{\"a\": 1}".as_slice(), 7).unwrap_err();
    assert!(too_large.to_string().contains("8 bytes, over the limit of 7"), "{too_large}");
}

#[test]
fn a_document_that_is_wrong_everywhere_is_judged_within_bounds() {
    let text = format!("{{\"targets\":[{}0]}}", "0,".repeat(50_000));
    let invalid = crate::validate::validate(parse(&text).unwrap()).unwrap_err();
    assert!(invalid.0.len() < 20_000, "{}", invalid.0.len());
    assert_eq!(invalid.0[1].to_string(), "registry.targets[0]: must be an object");
}

#[test]
fn judging_a_long_list_takes_no_longer_than_reading_it() {
    // Each of these would be compared with each: hours, not a blink.
    let names = |prefix: &str| (0..60_000).map(|n| json!(format!("{prefix}{n}"))).collect::<Vec<_>>();
    let mut document = fleet(2, 2);
    document["targets"][0]["hostnames"] = names("h").into();
    document["targets"][0]["ssh_fallbacks"] =
        (0..60_000).map(|n| json!({"name": format!("p{n}"), "destination": "ops@x.example"})).collect();
    let services = document["service_directory"]["services"].as_object_mut().unwrap();
    let (_, service) = services.iter_mut().next().unwrap();
    service["consumers"]["many"] = json!({"capabilities": names("c")});
    let invalid = crate::validate::validate(Document::from_value(document)).unwrap_err();
    let fallbacks = "registry.targets[0].ssh_fallbacks: must contain at most 16 paths";
    assert_eq!(invalid.0.first().map(ToString::to_string).as_deref(), Some(fallbacks), "{invalid}");
}

#[test]
fn unknown_keys_are_named_in_document_order() {
    assert_eq!(
        example("future").unknown_keys(),
        [
            "revision_note",
            "targets[one].tags",
            "targets[one].ssh_fallbacks[relay].cost",
            "targets[one].service_resolver.udp",
            "targets[one].service_resolver.adapters[0].mirror",
            "targets[one].services[web].slice",
            "service_directory.authority.term",
            "service_directory.policy",
            "service_directory.services.web.weight",
            "service_directory.services.web.endpoints.one.zone",
            "service_directory.services.web.consumers.people.quota",
        ]
    );
    assert_eq!(example("typical").unknown_keys(), Vec::<String>::new());
}

#[test]
fn documents_are_compared_by_what_they_say() {
    let a = parse(r#"{"x": [1, 2.0], "y": {"p": null, "q": "s"}}"#).unwrap();
    assert!(a.same_as(&parse(r#"{"y":{"q":"\u0073","p":null},"x":[1,2.0]}"#).unwrap()));
    let exponent = |text: &str| parse(&format!("{{\"x\": [{text}]}}")).unwrap();
    assert!(exponent("1E+3").same_as(&exponent("1e3")) && !exponent("1e-3").same_as(&exponent("1e3")));
    assert!(!a.same_as(&parse(r#"{"x": [2.0, 1], "y": {"p": null, "q": "s"}}"#).unwrap()));
    assert!(!a.same_as(&parse(r#"{"x": [1, 2.0], "y": {"q": "s"}}"#).unwrap()));
}

#[test]
fn counts_and_generation_are_read_from_what_is_there() {
    let odd = parse(r#"{"targets": [{"name": "a"}, {"name": ""}, {}, 7], "service_directory": {"generation": "7"}}"#)
        .unwrap();
    assert_eq!((odd.target_count(), odd.generation()), (1, None));
    assert_eq!(parse(r#"{"targets": "all"}"#).unwrap().target_count(), 0);
    assert_eq!(example("typical").generation(), Some(Generation(7)));
}

fn registry(targets: Value) -> Registry {
    (*valid(json!({"schema_version": 2, "targets": targets})).registry).clone()
}

fn host(name: &str, hostnames: &[&str], ssh: &str) -> Value {
    json!({"name": name, "kind": "local", "release_platform": "linux-amd64", "hostnames": hostnames, "ssh": ssh})
}

fn found(registry: &Registry, hostname: &str, user: &str) -> Option<String> {
    lookup_self(registry, hostname, user).unwrap().map(|t| t.to_string())
}

#[test]
fn a_host_finds_itself_by_name_hostname_or_ssh_host() {
    let registry =
        registry(json!([host("a", &["alpha.local"], "ops@192.0.2.1:22"), host("b", &[], "ops@beta.example")]));
    for hostname in ["a", "ALPHA.local.", " alpha.local", "192.0.2.1"] {
        assert_eq!(found(&registry, hostname, "root").as_deref(), Some("a"), "{hostname}");
    }
    assert_eq!(found(&registry, "beta.example", "root").as_deref(), Some("b"));
    assert_eq!(found(&registry, "ops@beta.example", "root"), None);
    assert_eq!(found(&registry, "gamma", "root"), None);
}

#[test]
fn people_who_share_a_machine_are_told_apart_by_user() {
    let registry = registry(json!([
        host("alice-box", &["alice@devbox"], "alice@devbox:22"),
        host("bob-box", &["bob@devbox"], "bob@devbox:22"),
        host("devbox-host", &["devbox"], "root@devbox.example"),
    ]));
    assert_eq!(found(&registry, "devbox", "alice").as_deref(), Some("alice-box"));
    assert_eq!(found(&registry, "DevBox.", "bob").as_deref(), Some("bob-box"));
    assert_eq!(found(&registry, "devbox", "carol").as_deref(), Some("devbox-host"));
}

#[test]
fn a_name_that_two_targets_claim_is_ambiguous() {
    let mut registry = registry(json!([host("a", &["alpha"], "x@one.example"), host("b", &[], "x@two.example")]));
    // Validation refuses this; an older copy may still say it.
    registry.targets.get_mut("b").unwrap().hostnames.push("alpha".into());
    let error = lookup_self(&registry, "Alpha", "x").unwrap_err();
    assert_eq!(error.to_string(), "hostname 'alpha' matches multiple registry targets: a, b");
}

proptest! {
    #[test]
    fn any_document_round_trips(value in any_document()) {
        let written = Document::from_value(value.clone());
        let read = Document::parse(written.bytes().to_vec()).unwrap();
        prop_assert_eq!(read.value(), &value);
        prop_assert_eq!(read.bytes(), written.bytes());
        let again = Document::from_value(read.value().clone());
        prop_assert_eq!(again.bytes(), written.bytes());
        prop_assert!(read.duplicate_keys().is_empty());
        // Whatever it holds, judging it ends without a panic.
        let _ = crate::validate::validate(read.clone());
        let _ = read.unknown_keys();
    }

    #[test]
    fn any_number_keeps_its_text(numbers in proptest::collection::vec("-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,3})?", 0..20)) {
        let text = format!("{{\"list\":[{}],\"last\":{{\"1\":\"2e3\"}}}}", numbers.join(","));
        let read = parse(&text).unwrap();
        prop_assert_eq!(read.value().to_string(), text);
    }

    #[test]
    fn a_second_key_anywhere_is_a_duplicate(value in any_document(), key in "[a-z]{1,4}") {
        let inner = serde_json::to_string(&value).unwrap();
        let text = format!("{{\"{key}\": {inner}, \"list\": [{inner}, {{\"{key}\": 1, \"x\": {inner}, \"{key}\": 2}}]}}");
        prop_assume!(key != "list" && key != "x");
        let found = duplicates(&text);
        prop_assert_eq!(found, vec![format!("registry.list[1]: {key}")]);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Document::parse(bytes);
    }

    #[test]
    fn no_brackets_make_the_reader_panic(text in "[\\[\\]{}:,\"\\\\ a1]{0,80}") {
        let _ = parse(&text);
    }
}
