use super::*;
use crate::fixture::{EXAMPLES, any_json, example, fleet};
use crate::name::StoreVersion;
use crate::validate::validate;
use proptest::prelude::*;
use serde_json::json;

fn version() -> StoreVersion {
    "G".parse().unwrap()
}

fn changed(change: impl FnOnce(&mut Value)) -> Document {
    let mut value = example("typical").value().clone();
    change(&mut value);
    Document::from_value(value)
}

/// The document with one place put back to what it was: equal to the original when nothing else changed.
fn put_back(next: &Document, original: &Document, pointers: &[&str]) -> Value {
    let mut value = next.value().clone();
    for pointer in pointers {
        *value.pointer_mut(pointer).unwrap() = original.value().pointer(pointer).unwrap().clone();
    }
    value
}

mod guards {
    use super::*;

    fn push(next: &Document, overrides: Overrides) -> Result<(), String> {
        guard_push(Some((&example("typical"), &version())), next, overrides).map_err(|e| e.0)
    }

    #[track_caller]
    fn refused(next: &Document, beginning: &str) {
        let sentence = push(next, Overrides::default()).unwrap_err();
        assert!(sentence.starts_with(beginning), "{sentence}");
        assert_eq!(push(next, Overrides { force: true, allow_empty_fleet: false }), Ok(()));
    }

    #[test]
    fn a_push_may_not_drop_top_level_keys() {
        let next = changed(|v| {
            v.as_object_mut().unwrap().retain(|key, _| key != "channels" && key != "fleets");
        });
        refused(
            &next,
            "registry upload refused: it would delete the top-level key(s) fleets, channels that generation G carries. ",
        );
    }

    #[test]
    fn a_push_may_not_take_the_directory_back_or_change_it_silently() {
        let older = changed(|v| v["service_directory"]["generation"] = json!(5));
        refused(
            &older,
            "registry upload refused: its service directory is generation 5 and the registry already carries 7. ",
        );
        let silent = changed(|v| v["service_directory"]["services"]["orders"]["active_host"] = json!("control-host"));
        refused(
            &silent,
            "registry upload refused: it changes the service directory but leaves its generation at 7, the number the registry already carries. ",
        );
        assert_eq!(push(&changed(|v| v["service_directory"]["generation"] = json!(8)), Overrides::default()), Ok(()));
        assert_eq!(push(&changed(|v| v["channels"]["notes"] = json!("x")), Overrides::default()), Ok(()));
    }

    #[test]
    fn force_does_not_erase_a_fleet() {
        let empty = Document::from_value(json!({"schema_version": 2, "targets": []}));
        let forced = Overrides { force: true, allow_empty_fleet: false };
        let sentence = push(&empty, forced).unwrap_err();
        assert!(sentence.starts_with(
            "registry upload refused: generation G declares 3 target(s) and this document declares none. "
        ));
        assert!(sentence.ends_with("pass --allow-empty-fleet if erasing every target is genuinely what you mean."));
        assert_eq!(push(&empty, Overrides { force: true, allow_empty_fleet: true }), Ok(()));
        assert_eq!(guard_push(None, &empty, Overrides::default()), Ok(()), "creating a registry");
    }
}

mod paths {
    use super::*;

    fn read(path: &str) -> Result<Value, String> {
        read_path(&example("typical"), path).cloned().map_err(|e| e.sentence)
    }

    #[test]
    fn keys_indexes_and_names_are_followed() {
        assert_eq!(read("schema_version"), Ok(json!(2)));
        assert_eq!(read("targets.gpu-box.ssh"), Ok(json!("ops@gpu.example")));
        assert_eq!(read("targets.1.service_resolver.adapters.0.service"), Ok(json!("stado-object-api")));
        assert_eq!(read("registry.targets[1].service_resolver.adapters[1].consumer"), Ok(json!("lem")));
        assert_eq!(read("service_directory.services[orders].active_host"), Ok(json!("gpu-box")));
        assert_eq!(read("targets[gpu-box].hostnames"), Ok(json!(["gpu-box"])));
    }

    #[test]
    fn names_with_dots_are_found_without_brackets() {
        let document = Document::from_value(json!({"a.b": {"c": 1}, "targets": [{"name": "x.y", "ssh": null}]}));
        assert_eq!(read_path(&document, "a.b.c").unwrap(), &json!(1));
        assert_eq!(read_path(&document, "targets.x.y.ssh").unwrap(), &Value::Null);
        assert_eq!(read_path(&document, "[a.b].c").unwrap(), &json!(1));
    }

    #[test]
    fn a_path_that_leads_nowhere_says_where_it_ended() {
        let nowhere = |path: &str| read(path).unwrap_err();
        assert!(
            nowhere("nothing")
                .starts_with("registry has no `nothing` under `<root>`; keys there: schema_version, targets, ")
        );
        assert_eq!(
            nowhere("service_directory.authority.term"),
            "registry has no `term` under `service_directory.authority`; keys there: target, command"
        );
        assert_eq!(
            nowhere("targets.mars.ssh"),
            "registry array `targets` has no element named `mars`; names there: control-host, gpu-box, alice-laptop"
        );
        assert_eq!(nowhere("targets.3"), "registry array `targets` has 3 element(s), no index 3");
        assert_eq!(
            nowhere("schema_version.x"),
            "registry value at `schema_version` is a number, which has no `x` inside"
        );
        assert_eq!(nowhere("targets.2.ssh.x"), "registry value at `targets.2.ssh` is a null, which has no `x` inside");
    }

    #[test]
    fn an_empty_path_is_a_usage_error() {
        for path in ["", ".", "a..b", "a.", "targets[1", "targets[1]x"] {
            let error = read_path(&example("typical"), path).unwrap_err();
            assert_eq!(error.class, Class::Usage, "{path}");
            assert!(error.sentence.starts_with("--path names the field to change, as `registry pull --path` reads it"));
        }
    }
}

mod sets {
    use super::*;

    #[test]
    fn a_value_is_json_or_text() {
        assert_eq!(parse_value("7"), Ok(json!(7)));
        assert_eq!(parse_value("{\"a\": [1]}"), Ok(json!({"a": [1]})));
        assert_eq!(parse_value("ops@host"), Ok(json!("ops@host")));
        assert_eq!(parse_value(""), Ok(json!("")));
        assert!(parse_value("{\"a\": 1, \"a\": 2}").is_err());
    }

    #[test]
    fn only_the_named_place_changes() {
        let before = example("future");
        let set = set_path(&before, "targets.one.ssh", json!("me@new.example")).unwrap();
        assert_eq!(set.previous, Some(json!("me@one.example")));
        assert_eq!(put_back(&set.edited.document, &before, &["/targets/0/ssh"]), *before.value());
        let text = String::from_utf8(set.edited.document.bytes().to_vec()).unwrap();
        for kept in ["\"ratio\": 1.50", "18446744073709551616", "\"exponent\": 1E+3", "\"łódź\"", "\"weight\": 0.250"]
        {
            assert!(text.contains(kept), "{kept}");
        }
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn what_is_already_there_is_not_written() {
        let before = example("typical");
        let set = set_path(&before, "service_directory.services.orders.active_host", json!("gpu-box")).unwrap();
        assert!(!set.edited.changed);
        assert_eq!(set.edited.document.bytes(), before.bytes());
    }

    #[test]
    fn only_the_last_part_may_be_new() {
        let before = example("typical");
        let set = set_path(&before, "targets.gpu-box.rack", json!(4)).unwrap();
        assert_eq!((set.previous, set.edited.document.value()["targets"][1]["rack"].clone()), (None, json!(4)));
        let appended = set_path(&before, "targets.gpu-box.hostnames.1", json!("gpu")).unwrap();
        assert_eq!(appended.edited.document.value()["targets"][1]["hostnames"], json!(["gpu-box", "gpu"]));
        let sentence = |path: &str| set_path(&before, path, json!(1)).unwrap_err().sentence;
        assert!(
            sentence("targets.gpu-box.rack.row")
                .starts_with("registry has no `rack` under `targets.1`; keys there: name, ")
        );
        assert!(sentence("targets.mars").contains("has no element named `mars`"));
    }

    #[test]
    fn a_change_of_the_directory_advances_its_generation() {
        let before = example("typical");
        let path = "service_directory.services.orders.endpoints.gpu-box.url";
        let set = set_path(&before, path, json!("tcp://127.0.0.1:5999")).unwrap();
        assert_eq!(set.edited.generation, Some(Generation(8)));
        let back = ["/service_directory/generation", "/service_directory/services/orders/endpoints/gpu-box/url"];
        assert_eq!(put_back(&set.edited.document, &before, &back), *before.value());
        assert!(validate(set.edited.document).is_ok());
        let elsewhere = set_path(&before, "channels.notes", json!("x")).unwrap();
        assert_eq!(elsewhere.edited.generation, Some(Generation(7)));
    }

    #[test]
    fn the_generation_itself_only_rises() {
        let before = example("typical");
        let set = |n: u64| set_path(&before, "service_directory.generation", json!(n));
        assert_eq!(set(20).unwrap().edited.generation, Some(Generation(20)));
        assert!(!set(7).unwrap().edited.changed);
        assert!(set(6).unwrap_err().sentence.contains("is generation 6 and the registry already carries 7"));
    }

    #[test]
    fn a_directory_replaced_whole_gets_a_generation_that_rises() {
        let before = example("typical");
        let mut directory = before.value()["service_directory"].clone();
        let whole = |d: &Value| set_path(&before, "service_directory", d.clone()).unwrap().edited;
        assert!(!whole(&directory).changed);
        directory["services"].as_object_mut().unwrap().shift_remove("orders");
        assert_eq!(whole(&directory).generation, Some(Generation(8)));
        directory["generation"] = json!(40);
        assert_eq!(whole(&directory).generation, Some(Generation(40)));
    }

    #[test]
    fn a_document_with_a_duplicate_key_is_not_edited() {
        let document = Document::parse(br#"{"a": {"b": 1, "b": 2}, "c": 3}"#.as_slice()).unwrap();
        let sentence = set_path(&document, "c", json!(4)).unwrap_err().sentence;
        assert_eq!(sentence, "registry.a: duplicate key 'b'; repair the document by hand before it is edited");
    }

    #[test]
    fn a_value_that_nests_too_deep_is_refused() {
        let deep = serde_json::from_str(&format!("{}{}", "[".repeat(99), "]".repeat(99))).unwrap();
        assert!(
            set_path(&example("typical"), "targets.gpu-box.rack", deep).unwrap_err().sentence.contains("nests deeper")
        );
    }
}

mod hosts {
    use super::*;

    fn host(name: &str, ssh: &str) -> NewHost {
        NewHost { name: name.into(), kind: "local".into(), ssh: ssh.into(), release_platform: "linux-amd64".into() }
    }

    #[test]
    fn a_host_is_added_last_and_nothing_else_changes() {
        let before = example("typical");
        let edited = add_host(&before, "local:registry.json", &host("mini", "ops@mini.example")).unwrap();
        let mut value = edited.document.value().clone();
        let added = value["targets"].as_array_mut().unwrap().pop().unwrap();
        assert_eq!(
            added.to_string(),
            r#"{"name":"mini","kind":"local","release_platform":"linux-amd64","ssh":"ops@mini.example"}"#
        );
        assert_eq!(value, *before.value());
        assert_eq!(edited.generation, Some(Generation(7)));
        assert!(validate(edited.document).is_ok());
    }

    #[test]
    fn refusals_are_the_sentences_of_the_contract() {
        let refused = |h: &NewHost| add_host(&example("typical"), "local:registry.json", h).unwrap_err();
        assert_eq!(
            refused(&host("gpu-box", "x@y")).sentence,
            "gpu-box is already declared in local:registry.json (kind=local); refusing to add a duplicate"
        );
        assert_eq!(refused(&host(" ", "x@y")), EditError::usage("HOST must not be empty"));
        assert_eq!(refused(&host("mini", "")), EditError::usage("--ssh must not be empty"));
    }
}

mod consumers {
    use super::*;

    fn new(consumer: &str, capabilities: &[&str]) -> NewConsumer {
        let capabilities = Some(capabilities.iter().map(|c| (*c).to_owned()).collect());
        NewConsumer { consumer: consumer.into(), capabilities, binding: None }
    }

    fn bound(target: &str, bind: Option<&str>, reassign: bool) -> NewConsumer {
        let binding = Binding { target: target.into(), bind: bind.map(|b| b.parse().unwrap()), reassign };
        NewConsumer { consumer: "lem".into(), capabilities: None, binding: Some(binding) }
    }

    fn sentence(service: &str, new: &NewConsumer) -> String {
        add_consumer(&example("typical"), service, new).unwrap_err().sentence
    }

    #[test]
    fn a_consumer_is_declared_under_the_next_generation() {
        let before = example("typical");
        let added = add_consumer(&before, "orders", &new("audit", &["read", "read"])).unwrap();
        assert_eq!(added.capabilities, ["read"]);
        assert_eq!(added.edited.generation, Some(Generation(8)));
        let mut value = added.edited.document.value().clone();
        let consumers =
            value.pointer_mut("/service_directory/services/orders/consumers").unwrap().as_object_mut().unwrap();
        assert_eq!(consumers.shift_remove("audit"), Some(json!({"capabilities": ["read"]})));
        value["service_directory"]["generation"] = json!(7);
        assert_eq!(value, *before.value());
    }

    #[test]
    fn declaring_it_again_changes_nothing_and_keeps_its_grants() {
        let before = example("typical");
        let again = add_consumer(&before, "stado-object-api", &new("stado-local-agent", &["object-store"])).unwrap();
        assert!(!again.edited.changed);
        let more = add_consumer(&before, "stado-object-api", &new("stado-local-agent", &["x"])).unwrap();
        let consumer = &more.edited.document.value()["service_directory"]["services"]["stado-object-api"]["consumers"]
            ["stado-local-agent"];
        assert_eq!(consumer, &json!({"capabilities": ["x"], "grants": []}));
        let only_bound = add_consumer(&before, "brama", &bound("gpu-box", None, false)).unwrap();
        assert_eq!((only_bound.capabilities, only_bound.edited.changed), (vec!["chat".to_owned()], false));
    }

    #[test]
    fn a_binding_is_an_adapter_of_the_target() {
        let added =
            add_consumer(&example("typical"), "brama", &bound("control-host", Some("127.0.0.1:17777"), false)).unwrap();
        assert_eq!(added.binding, Some(Bound { target: "control-host".into(), bind: Some("127.0.0.1:17777".into()) }));
        let adapters = &added.edited.document.value()["targets"][0]["service_resolver"]["adapters"];
        assert_eq!(adapters, &json!([{"service": "brama", "consumer": "lem", "bind": "127.0.0.1:17777"}]));
        assert!(validate(added.edited.document).is_ok());
    }

    #[test]
    fn a_declared_adapter_moves_only_when_asked() {
        let held = bound("gpu-box", Some("127.0.0.1:17999"), false);
        assert!(sentence("brama", &held).contains("at 127.0.0.1:17601; pass --reassign to move it"));
        let moved =
            add_consumer(&example("typical"), "brama", &bound("gpu-box", Some("127.0.0.1:17999"), true)).unwrap();
        let adapter = &moved.edited.document.value()["targets"][1]["service_resolver"]["adapters"][1];
        assert_eq!((&adapter["bind"], &adapter["idle_seconds"]), (&json!("127.0.0.1:17999"), &json!(330)));
        let freed = add_consumer(&example("typical"), "brama", &bound("gpu-box", None, true)).unwrap();
        assert_eq!(freed.binding, Some(Bound { target: "gpu-box".into(), bind: None }));
        assert_eq!(freed.edited.document.value()["targets"][1]["service_resolver"]["adapters"][1].get("bind"), None);
    }

    #[test]
    fn refusals_are_the_sentences_of_the_contract() {
        assert_eq!(sentence("orders", &new("", &[])), "consumer identity must not be empty");
        assert_eq!(
            sentence("mail", &new("c", &[])),
            "no service \"mail\" in service_directory; it declares stado-object-api, orders, brama, skarbiec"
        );
        let needs = "consumer binding requires a loopback IP and a nonzero port";
        assert_eq!(sentence("brama", &bound("gpu-box", Some("192.0.2.1:80"), false)), needs);
        assert_eq!(sentence("brama", &bound("gpu-box", Some("127.0.0.1:0"), false)), needs);
        assert_eq!(sentence("brama", &bound("mars", None, false)), "target 'mars' is not in the canonical registry");
        let no_resolver = changed(|v| drop(v["targets"][0].as_object_mut().unwrap().shift_remove("service_resolver")));
        let error = add_consumer(&no_resolver, "brama", &bound("control-host", None, false)).unwrap_err();
        assert_eq!(error.sentence, "resolver target \"control-host\" has no configured adapters");
        let gone = remove_consumer(&example("typical"), "orders", "lem").unwrap_err();
        assert_eq!(gone.sentence, "\"orders\" does not declare \"lem\"; it declares shop, reports");
    }

    #[test]
    fn a_removed_consumer_takes_its_adapters_with_it() {
        let removed = remove_consumer(&example("typical"), "orders", "shop").unwrap();
        assert_eq!(removed.bindings, [Bound { target: "alice-laptop".into(), bind: Some("127.0.0.1:15432".into()) }]);
        assert_eq!(removed.edited.generation, Some(Generation(8)));
        let valid = validate(removed.edited.document).unwrap();
        assert_eq!(valid.registry.targets["alice-laptop"].resolver.as_ref().unwrap().adapters.len(), 1);
    }

    #[test]
    fn the_last_consumer_cannot_go_unseen() {
        let removed = remove_consumer(&example("typical"), "skarbiec", "brama").unwrap();
        let invalid = validate(removed.edited.document).unwrap_err();
        assert_eq!(
            invalid.0[0].to_string(),
            "registry.service_directory.services.skarbiec.consumers: must not be empty"
        );
    }
}

mod moves {
    use super::*;

    fn moved(service: &str, host: &str, endpoint: Option<&str>) -> Result<Edited, EditError> {
        move_service(&example("typical"), service, host, endpoint.map(|e| e.parse().unwrap()))
    }

    #[test]
    fn a_service_moves_to_another_port_of_its_host() {
        let before = example("typical");
        let edited = moved("orders", "gpu-box", Some("tcp://127.0.0.1:5999")).unwrap();
        assert_eq!(edited.generation, Some(Generation(8)));
        let back = ["/service_directory/generation", "/service_directory/services/orders/endpoints/gpu-box/url"];
        assert_eq!(put_back(&edited.document, &before, &back), *before.value());
        let route =
            crate::directory::Directory::build(validate(edited.document).unwrap().registry, "gpu-box".parse().unwrap());
        assert_eq!(route.resolve("orders", "shop").unwrap().endpoint.to_string(), "tcp://127.0.0.1:5999");
    }

    #[test]
    fn a_standby_address_becomes_the_endpoint() {
        let edited = moved("stado-object-api", "gpu-box", None).unwrap();
        let service = &edited.document.value()["service_directory"]["services"]["stado-object-api"];
        assert_eq!(service["active_host"], json!("gpu-box"));
        assert_eq!(service["standby"], json!({}));
        assert_eq!(service["endpoints"]["gpu-box"], json!({"url": "http://127.0.0.1:18765"}));
        assert_eq!(service["endpoints"]["control-host"]["base_path"], json!("/api/v1"));
    }

    #[test]
    fn a_move_to_where_it_is_changes_nothing() {
        let edited = moved("orders", "gpu-box", Some("tcp://127.0.0.1:5433")).unwrap();
        assert!(!edited.changed);
        assert_eq!(edited.document.bytes(), example("typical").bytes());
    }

    #[test]
    fn a_move_needs_a_known_service_host_and_address() {
        let sentence = |r: Result<Edited, EditError>| r.unwrap_err().sentence;
        assert!(
            sentence(moved("mail", "gpu-box", None))
                .starts_with("no service \"mail\" in service_directory; it declares ")
        );
        assert_eq!(sentence(moved("orders", "mars", None)), "target 'mars' is not in the canonical registry");
        assert_eq!(
            sentence(moved("orders", "control-host", None)),
            "service_directory declares no endpoint for orders on control-host; name its address there"
        );
        let bare = Document::from_value(json!({"schema_version": 2, "targets": [{"name": "a"}]}));
        assert_eq!(sentence(move_service(&bare, "x", "a", None)), "the registry carries no service_directory");
    }
}

/// A path to some place of the document, with its JSON pointer.
fn places(document: &Document) -> Vec<(String, String)> {
    fn walk(value: &Value, path: String, pointer: String, out: &mut Vec<(String, String)>) {
        let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
        match value {
            Value::Object(map) => map.iter().for_each(|(key, inner)| {
                walk(inner, format!("{path}[{key}]"), format!("{pointer}/{}", escape(key)), out);
            }),
            Value::Array(list) => list.iter().enumerate().for_each(|(i, inner)| {
                walk(inner, format!("{path}[{i}]"), format!("{pointer}/{i}"), out);
            }),
            _ => {}
        }
        out.push((path, pointer));
    }
    let mut out = Vec::new();
    walk(document.value(), String::new(), String::new(), &mut out);
    out.retain(|(path, _)| !path.is_empty());
    out
}

proptest! {
    #[test]
    fn a_set_touches_only_its_place(example_index in 0..EXAMPLES.len(), place: prop::sample::Index, value in any_json()) {
        let before = example(EXAMPLES[example_index]);
        let places = places(&before);
        let (path, pointer) = &places[place.index(places.len())];
        prop_assert_eq!(read_path(&before, path).unwrap(), before.value().pointer(pointer).unwrap());
        let in_directory = pointer.starts_with("/service_directory");
        if let Ok(set) = set_path(&before, path, value.clone()) {
            let next = &set.edited.document;
            prop_assert_eq!(set.previous.as_ref(), before.value().pointer(pointer));
            let mut back = vec![pointer.as_str()];
            if in_directory && pointer != "/service_directory" {
                back.push("/service_directory/generation");
                prop_assert!(!set.edited.changed || next.generation() > before.generation() || pointer == "/service_directory/generation");
            }
            let restored = put_back(next, &before, &back);
            prop_assert_eq!(restored.to_string(), before.value().to_string(), "order and numbers too");
            if pointer != "/service_directory" {
                prop_assert_eq!(next.value().pointer(pointer).unwrap(), &value);
            }
        } else {
            // Only a generation that does not rise is refused here.
            prop_assert_eq!(pointer.as_str(), "/service_directory/generation");
        }
    }

    #[test]
    fn a_generation_never_goes_back_whatever_is_edited(edits in proptest::collection::vec((0..5_u8, 0..3_u8), 1..12)) {
        let mut held = Document::from_value(fleet(3, 3));
        for (kind, n) in edits {
            let service = format!("service-{n}");
            let edited = match kind {
                0 => move_service(&held, &service, &format!("host-{}", (n + 1) % 3), Some("tcp://127.0.0.1:9".parse().unwrap())),
                1 => add_consumer(&held, &service, &NewConsumer { consumer: "new".into(), ..NewConsumer::default() }).map(|a| a.edited),
                2 => remove_consumer(&held, &service, "new").map(|r| r.edited),
                3 => set_path(&held, "service_directory.note", json!(n)).map(|s| s.edited),
                _ => set_path(&held, "note", json!(n)).map(|s| s.edited),
            };
            let Ok(edited) = edited else { continue };
            let directory_changed = !held.same_section(&edited.document, "service_directory");
            prop_assert_eq!(edited.document.generation() > held.generation(), directory_changed);
            prop_assert_eq!(guard_push(Some((&held, &version())), &edited.document, Overrides::default()), Ok(()));
            held = edited.document;
        }
    }
}
