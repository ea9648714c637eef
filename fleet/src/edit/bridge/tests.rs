use super::*;
use crate::document::Document;
use crate::edit::check_write;
use crate::testing::document;
use crate::validate::validate;
use serde_json::{Value, json};

const AT: &str = "2026-12-01T00:00:00Z";

/// `control` (the authority), `desk` and `lap`; `db` and `web` are not of a mesh.
fn three() -> Document {
    let mut value = document(7, 5432).value().clone();
    value["targets"].as_array_mut().unwrap().push(json!({
        "name": "lap", "kind": "local", "release_platform": "linux-amd64", "ssh": "ann@127.0.0.4", "future": {"kept": true}
    }));
    Document::from_value(value)
}

fn new(host: &str, service: &str, port: u16) -> NewPublication {
    NewPublication {
        service: service.into(),
        host: host.into(),
        mesh: "checkout.postgres".into(),
        endpoint: format!("tcp://127.0.0.1:{port}").parse().unwrap(),
        hostname: None,
        app_protocol: "postgres".into(),
        consumers: Vec::new(),
        standby: false,
        at: AT.into(),
    }
}

fn published(document: &Document, host: &str, port: u16) -> Document {
    publish(document, &new(host, "orders", port)).unwrap().edited.document
}

fn standing_by(document: &Document, host: &str, port: u16) -> Document {
    publish(document, &NewPublication { standby: true, ..new(host, "orders", port) }).unwrap().edited.document
}

fn want(service: &str, host: &str) -> NewUse {
    NewUse { service: service.into(), host: host.into(), consumer: None, port: None }
}

fn entry(document: &Document) -> Value {
    document.value()["service_directory"]["services"]["orders"].clone()
}

/// Whether this build, and one that knows none of this, read the document: nothing in it is a new key of the directory.
fn is_valid(document: &Document) {
    validate(document.clone()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(check_write(None, document), Ok(None));
}

#[test]
fn a_published_service_is_an_ordinary_entry_with_a_unit_of_its_host() {
    let before = three();
    let done = publish(&before, &new("desk", "orders", 15432)).unwrap();
    assert_eq!((done.role, done.active_host.as_str()), (Role::Active, "desk"));
    assert_eq!(done.consumers, ["fleet"]);
    let next = done.edited.document;
    is_valid(&next);
    assert_eq!(
        entry(&next),
        json!({
            "managed_service": "mesh:orders", "active_host": "desk",
            "endpoints": {"desk": {"url": "tcp://127.0.0.1:15432"}},
            "consumers": {"fleet": {"capabilities": []}},
        })
    );
    assert_eq!(
        next.value()["targets"][1]["services"],
        json!([{
            "name": "mesh:orders", "kind": "mesh", "mesh": "checkout.postgres", "managed_since": AT,
            "app_protocol": "postgres",
        }])
    );
    assert_eq!(next.generation().unwrap().0, 8);
    assert_eq!(next.value()["targets"][2], before.value()["targets"][2], "what is not meant is not touched");
    let typed = validate(next.clone()).unwrap().registry;
    let unit = typed.directory.as_ref().unwrap().services["orders"].published.clone().unwrap();
    assert_eq!(
        (unit.mesh.as_str(), unit.app_protocol.as_str(), unit.hostname),
        ("checkout.postgres", "postgres", None)
    );
    assert!(
        next.unknown_keys().iter().all(|key| key == "note" || key.ends_with("future")),
        "{:?}",
        next.unknown_keys()
    );

    let again = publish(&next, &new("desk", "orders", 15432)).unwrap();
    assert!(!again.edited.changed, "the same publication again writes nothing");
}

#[test]
fn a_port_that_changes_changes_the_endpoint_alone() {
    let next = published(&published(&three(), "desk", 15432), "desk", 15999);
    assert_eq!(entry(&next)["endpoints"], json!({"desk": {"url": "tcp://127.0.0.1:15999"}}));
    assert_eq!(next.generation().unwrap().0, 9);
}

#[test]
fn consumers_are_added_and_nobody_is_taken_away() {
    let for_lap = NewPublication { consumers: vec!["lap".into()], ..new("desk", "orders", 1) };
    let next = publish(&three(), &for_lap).unwrap();
    assert_eq!(next.consumers, ["lap"]);
    let ci = NewPublication { consumers: vec!["ci".into(), "lap".into()], ..new("desk", "orders", 1) };
    let more = publish(&next.edited.document, &ci).unwrap();
    assert_eq!(more.consumers, ["lap", "ci"]);
    let again = publish(&more.edited.document, &new("desk", "orders", 1)).unwrap();
    assert!(!again.edited.changed, "nobody named: they stay as they are");
    let nobody = NewPublication { consumers: vec![" ".into()], ..new("desk", "orders", 1) };
    assert!(publish(&three(), &nobody).unwrap_err().sentence.contains("consumer identity must not be empty"));
}

#[test]
fn names_that_are_taken_are_refused_with_the_way_out() {
    let sentence = |document: &Document, new: &NewPublication| publish(document, new).unwrap_err().sentence;
    assert_eq!(
        sentence(&three(), &new("desk", "db", 1)),
        "service_directory already has a db that no mesh publishes: db runs under the unit \"db\"; publish this one under \
         another name with --as"
    );
    let of_desk = published(&three(), "desk", 15432);
    assert_eq!(
        sentence(&of_desk, &new("lap", "orders", 1)),
        "orders is published by desk; publish this one under another name with --as, or with --standby if it is the same \
         service and lap is to stand by for `stado service move`"
    );
    let other = NewPublication { mesh: "ledger.postgres".into(), ..new("desk", "orders", 1) };
    assert!(sentence(&of_desk, &other).starts_with("desk publishes its checkout.postgres as orders; "));
    assert!(sentence(&three(), &new("desk", "Orders", 1)).ends_with("give it one with --as"));
    assert!(
        sentence(&three(), &new("nobody", "orders", 1)).contains("target 'nobody' is not in the canonical registry")
    );
    let mut value = three().value().clone();
    value["targets"][2]["ssh"] = Value::Null;
    let nowhere = sentence(&Document::from_value(value), &new("lap", "orders", 1));
    assert!(nowhere.starts_with("the registry declares no way to lap, "), "{nowhere}");
}

#[test]
fn a_second_publisher_stands_by_and_a_move_swaps_the_two() {
    let both = standing_by(&published(&three(), "desk", 15432), "lap", 25432);
    is_valid(&both);
    assert_eq!(entry(&both)["standby"], json!({"lap": {"url": "tcp://127.0.0.1:25432"}}));
    let moved = move_published(&both, "orders", "lap").unwrap();
    assert_eq!((moved.from.as_str(), moved.mesh.as_str()), ("desk", "checkout.postgres"));
    let next = moved.edited.document;
    is_valid(&next);
    assert_eq!(entry(&next)["active_host"], "lap");
    assert_eq!(entry(&next)["endpoints"], json!({"lap": {"url": "tcp://127.0.0.1:25432"}}));
    assert_eq!(entry(&next)["standby"], json!({"desk": {"url": "tcp://127.0.0.1:15432"}}));
    assert!(!move_published(&next, "orders", "lap").unwrap().edited.changed, "it is there already");
    let back = move_published(&next, "orders", "desk").unwrap().edited.document;
    assert_eq!(entry(&back), entry(&both));
    // The one that stands by follows its port as well.
    let port = published(&next, "desk", 15999);
    assert_eq!(entry(&port)["standby"], json!({"desk": {"url": "tcp://127.0.0.1:15999"}}));
}

#[test]
fn a_move_goes_only_where_the_service_runs() {
    let of_desk = published(&three(), "desk", 15432);
    let sentence = |service: &str, to: &str| move_published(&of_desk, service, to).unwrap_err().sentence;
    assert!(sentence("orders", "lap").starts_with("lap does not stand by for orders; "));
    assert!(sentence("db", "lap").starts_with("no mesh publishes db: "));
    assert!(sentence("nothing", "lap").starts_with("no service \"nothing\" in service_directory"));
    assert!(sentence("orders", "nobody").contains("not in the canonical registry"));
}

#[test]
fn taking_back_takes_the_adapters_with_it_and_leaves_nothing_behind() {
    let before = three();
    let of_desk = published(&before, "desk", 15432);
    let used = use_service(&of_desk, &want("orders", "lap")).unwrap().edited.document;
    let done = unpublish(&used, "orders", "desk").unwrap();
    assert!(done.gone);
    assert_eq!(done.adapters, ["lap"]);
    let next = done.edited.document;
    is_valid(&next);
    assert_eq!(next.value()["service_directory"]["services"], before.value()["service_directory"]["services"]);
    assert_eq!(next.value()["targets"][1]["services"], json!([]));
    assert_eq!(next.value()["targets"][2]["service_resolver"]["adapters"], json!([]));
    let refused = |service: &str, host: &str| unpublish(&used, service, host).unwrap_err().sentence;
    assert!(refused("orders", "lap").starts_with("orders is published by desk, not by lap; "));
    assert!(refused("db", "control").starts_with("no mesh publishes db: "));
}

#[test]
fn the_last_service_of_a_directory_can_be_taken_back() {
    let mut value = three().value().clone();
    let mut directory = value.as_object_mut().unwrap().remove("service_directory").unwrap();
    directory.as_object_mut().unwrap().remove("services");
    value["empty_directory"] = directory;
    value["targets"][1]["service_resolver"]["adapters"] = json!([]);
    let empty = Document::from_value(value);
    is_valid(&empty);
    let next = unpublish(&published(&empty, "desk", 15432), "orders", "desk").unwrap().edited.document;
    is_valid(&next);
}

#[test]
fn a_host_that_stands_by_leaves_without_a_trace_and_the_active_one_only_after_a_move() {
    let one = published(&three(), "desk", 15432);
    let both = standing_by(&one, "lap", 25432);
    let refused = unpublish(&both, "orders", "desk").unwrap_err().sentence;
    assert!(refused.starts_with("orders goes to desk, and lap can take it over: move it first"), "{refused}");
    let left = unpublish(&both, "orders", "lap").unwrap();
    assert!(!left.gone && left.adapters.is_empty());
    assert_eq!(entry(&left.edited.document), entry(&one));
    assert_eq!(left.edited.document.value()["targets"][2]["services"], json!([]));
}

#[test]
fn a_host_uses_a_service_as_itself_else_as_any_host() {
    let of_desk = published(&three(), "desk", 15432);
    let used = use_service(&of_desk, &want("orders", "lap")).unwrap();
    assert_eq!((used.consumer.as_str(), used.bind.as_deref(), used.active_host.as_str()), ("fleet", None, "desk"));
    let next = used.edited.document;
    is_valid(&next);
    let resolver = &next.value()["targets"][2]["service_resolver"];
    assert_eq!(resolver["adapters"], json!([{"service": "orders", "consumer": "fleet"}]));
    assert_eq!(resolver["api_bind"], "127.0.0.1:17600", "a host without a policy gets the usual one");
    assert!(!use_service(&next, &want("orders", "lap")).unwrap().edited.changed);

    let port = |port| NewUse { port: Some(port), ..want("orders", "lap") };
    let pinned = use_service(&next, &port(15432)).unwrap();
    assert_eq!(pinned.bind.as_deref(), Some("127.0.0.1:15432"));
    let elsewhere = use_service(&pinned.edited.document, &port(15433)).unwrap();
    assert_eq!(elsewhere.bind.as_deref(), Some("127.0.0.1:15433"), "who names a port means it");
    let kept = use_service(&elsewhere.edited.document, &want("orders", "lap")).unwrap();
    assert_eq!(kept.bind.as_deref(), Some("127.0.0.1:15433"), "who names none keeps what is there");

    let own = NewPublication { consumers: vec!["ci".into(), "lap".into()], ..new("desk", "own", 2) };
    let own = publish(&three(), &own).unwrap().edited.document;
    assert_eq!(use_service(&own, &want("own", "lap")).unwrap().consumer, "lap");
    let as_ci = NewUse { consumer: Some("ci".into()), ..want("own", "lap") };
    assert_eq!(use_service(&own, &as_ci).unwrap().consumer, "ci");
    assert_eq!(
        use_service(&own, &want("own", "control")).unwrap_err().sentence,
        "own of desk is for ci, lap, and not for control; let it in with `stado service directory consumer add own \
         control`, or say with --consumer as whom control uses it"
    );
}

#[test]
fn a_host_that_uses_everything_is_given_what_is_there_and_what_comes() {
    let of_desk = published(&three(), "desk", 15432);
    let all = use_all(&of_desk, "lap", &[]).unwrap();
    assert_eq!((all.consumers, all.given), (vec!["lap".to_owned(), "fleet".into()], vec!["orders".to_owned()]));
    let next = all.edited.document;
    is_valid(&next);
    assert!(!use_all(&next, "lap", &[]).unwrap().edited.changed);

    let mine = NewPublication { consumers: vec!["lap".into()], mesh: "b".into(), ..new("control", "notes", 3) };
    let given = publish(&next, &mine).unwrap();
    assert_eq!(given.given, ["lap"]);
    let adapters = given.edited.document.value()["targets"][2]["service_resolver"]["adapters"].clone();
    assert_eq!(adapters, json!([{"service": "orders", "consumer": "fleet"}, {"service": "notes", "consumer": "lap"}]));
    is_valid(&given.edited.document);
    let foreign = NewPublication { consumers: vec!["ci".into()], mesh: "c".into(), ..new("control", "ci-only", 4) };
    assert!(publish(&next, &foreign).unwrap().given.is_empty(), "not for one of its consumers");
    let own = NewPublication { mesh: "d".into(), ..new("lap", "local", 5) };
    assert!(publish(&next, &own).unwrap().given.is_empty(), "what it serves itself it has");

    let left = leave_all(&given.edited.document, "lap").unwrap().document;
    assert!(left.value()["targets"][2].get("use").is_none());
    assert_eq!(left.value()["targets"][2]["service_resolver"]["adapters"], adapters);
    let unused = unuse(&left, "lap", "orders", None).unwrap();
    assert_eq!(unused.consumers, ["fleet"]);
    let error = unuse(&unused.edited.document, "lap", "orders", None).unwrap_err().sentence;
    assert_eq!(error, "lap does not use orders");
}

#[test]
fn what_a_host_publishes_is_read_back() {
    let both = standing_by(&published(&three(), "desk", 15432), "lap", 25432);
    let of = |host: &str| publications(&both, host);
    let row = |host: &str| of(host).into_iter().map(|p| (p.service, p.mesh, p.endpoint.unwrap().addr.port, p.active));
    assert_eq!(row("desk").collect::<Vec<_>>(), [("orders".into(), "checkout.postgres".into(), 15432, true)]);
    assert_eq!(row("lap").collect::<Vec<_>>(), [("orders".into(), "checkout.postgres".into(), 25432, false)]);
    assert!(of("control").is_empty());
}
