use super::*;
use crate::testing::{document, snapshot};
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

fn declared_for(document: crate::document::Document, target: &str) -> (Vec<Declared>, Vec<Skipped>) {
    let snapshot = snapshot(document, "a");
    declared(&snapshot.valid.registry, &target.parse().unwrap(), &|service, consumer| {
        (service == "web" && consumer == "shop").then(|| "127.0.0.1:20001".parse().unwrap())
    })
}

fn with_adapters(adapters: serde_json::Value) -> crate::document::Document {
    let mut value = document(1, 5432).value().clone();
    value["targets"][1]["service_resolver"]["adapters"] = adapters;
    crate::document::Document::from_value(value)
}

fn marker(service: &str, url: &str, source: &'static str) -> Declared {
    Declared { service: service.into(), url: url.into(), source }
}

#[test]
fn a_marker_is_the_hosts_own_endpoint_or_its_one_adapter() {
    let (markers, skipped) = declared_for(document(1, 5432), "control");
    assert_eq!(
        markers,
        [
            marker("db", "tcp://127.0.0.1:5432", "directory-endpoint"),
            marker("web", "http://127.0.0.1:8080", "directory-endpoint")
        ]
    );
    assert!(skipped.is_empty());

    let (markers, skipped) = declared_for(document(1, 5432), "desk");
    assert_eq!(markers, [marker("db", "tcp://127.0.0.1:17601", "resolver-adapter")]);
    assert_eq!(
        skipped,
        [Skipped {
            service: "web".into(),
            reason: "service_directory declares no endpoint for desk and its resolver declares no web adapter".into()
        }]
    );
}

#[test]
fn an_adapter_without_a_bind_has_the_port_it_was_given() {
    let adapters = json!([{"service": "web", "consumer": "shop"}, {"service": "db", "consumer": "shop"}]);
    let (markers, skipped) = declared_for(with_adapters(adapters), "desk");
    assert_eq!(markers, [marker("web", "http://127.0.0.1:20001", "resolver-adapter")]);
    assert!(skipped[0].reason.contains("without a bind"), "{skipped:?}");
}

#[test]
fn two_adapters_of_one_service_are_ambiguous() {
    let mut value = document(1, 5432).value().clone();
    value["service_directory"]["services"]["db"]["consumers"]["lem"] = json!({"capabilities": []});
    value["targets"][1]["service_resolver"]["adapters"] = json!([
        {"service": "db", "consumer": "shop", "bind": "127.0.0.1:17601"},
        {"service": "db", "consumer": "lem", "bind": "127.0.0.1:17602"}
    ]);
    let (markers, skipped) = declared_for(crate::document::Document::from_value(value), "desk");
    assert!(markers.is_empty());
    assert_eq!(
        skipped[0].reason,
        "this host's resolver declares 2 db adapters, one per consumer (shop, lem), and a marker names no consumer; read \
         the address from the consumer's own adapter"
    );
}

#[test]
fn the_keeper_writes_only_what_is_missing_or_different() {
    let home = tempfile::tempdir().unwrap();
    let forwards = Forwards::new(home.path().join("forwards"));
    let markers = [marker("a", "http://127.0.0.1:1", "x"), marker("b", "tcp://127.0.0.1:2", "x")];
    assert_eq!(forwards.keep(&markers).0, markers);
    assert_eq!(std::fs::read_to_string(forwards.marker("a")).unwrap(), "http://127.0.0.1:1\n");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(forwards.dir()), mode(&forwards.marker("a"))), (0o700, 0o600));
    assert_eq!(forwards.keep(&markers).0, []);

    std::fs::write(forwards.marker("a"), "  http://127.0.0.1:1 \n\n").unwrap();
    std::fs::write(forwards.marker("b"), "x".repeat(9000)).unwrap();
    std::fs::write(forwards.marker("undeclared"), "kept").unwrap();
    assert_eq!(forwards.keep(&markers).0, markers[1..]);
    std::fs::set_permissions(forwards.marker("a"), std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(forwards.keep(&markers).0, markers[..1]);
    assert_eq!(mode(&forwards.marker("a")), 0o600);
    assert_eq!(std::fs::read_to_string(forwards.marker("undeclared")).unwrap(), "kept");
}

#[test]
fn one_marker_that_cannot_be_written_does_not_stop_another() {
    let home = tempfile::tempdir().unwrap();
    let forwards = Forwards::new(home.path().join("forwards"));
    std::fs::create_dir_all(forwards.marker("a")).unwrap();
    let elsewhere = home.path().join("elsewhere");
    std::fs::write(&elsewhere, "kept").unwrap();
    symlink(&elsewhere, forwards.marker("b")).unwrap();
    let markers = [marker("a", "u", "x"), marker("b", "u", "x"), marker("c", "u", "x")];
    let (written, failed) = forwards.keep(&markers);
    assert_eq!(written, markers[2..]);
    assert_eq!(failed.iter().map(|f| f.0.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "kept");

    let linked = Forwards::new(home.path().join("linked"));
    symlink(home.path(), linked.dir()).unwrap();
    assert_eq!(linked.keep(&markers).1.len(), 3);
}

#[test]
fn fossils_are_the_undeclared_and_the_older_family_oldest_first() {
    let home = tempfile::tempdir().unwrap();
    let forwards = Forwards::new(home.path());
    let now = SystemTime::now();
    let write = |name: &str, text: &[u8], age: u64| {
        let path = home.path().join(name);
        std::fs::write(&path, text).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(now - Duration::from_secs(age)).unwrap();
        path
    };
    write("kept.local", b"http://127.0.0.1:1\n", 5);
    let old = write("old.local", b"http://127.0.0.1:8766\n", 1_036_800);
    let opened = write("kept.url", b"http://127.0.0.1:2\n", 60);
    let binary = write("binary.local", b"\xff\xfe", 30);
    write(".hidden.local", b"x", 1);
    write("half.local.staging", b"x", 1);
    write("readme.txt", b"x", 1);
    symlink(&old, home.path().join("link.local")).unwrap();
    std::fs::create_dir(home.path().join("dir.local")).unwrap();

    let fossils = forwards.fossils(&[marker("kept", "u", "x")], now).unwrap();
    let row = |f: &Fossil| (f.service.clone(), f.url.clone(), f.marker.clone(), f.age_seconds);
    assert_eq!(
        fossils.iter().map(row).collect::<Vec<_>>(),
        [
            ("old".into(), "http://127.0.0.1:8766".into(), old.clone(), 1_036_800),
            ("kept".into(), "http://127.0.0.1:2".into(), opened.clone(), 60),
            ("binary".into(), "(unreadable: it is not text)".into(), binary, 30),
        ]
    );
    assert_eq!(forwards.present().unwrap(), 4);

    std::fs::remove_file(&opened).unwrap();
    std::fs::remove_file(&old).unwrap();
    symlink(home.path().join("kept.local"), &old).unwrap();
    let pruned = forwards.prune(&fossils);
    assert_eq!(pruned.iter().map(|p| p.status).collect::<Vec<_>>(), ["failed", "removed", "removed"]);
    assert_eq!(pruned[0].error.as_deref(), Some("it is no longer a regular file"));
    assert_eq!(forwards.present().unwrap(), 1);
}

#[test]
fn a_host_without_markers_has_none() {
    let home = tempfile::tempdir().unwrap();
    let forwards = Forwards::new(home.path().join("none"));
    assert_eq!(forwards.present().unwrap(), 0);
    assert!(forwards.fossils(&[], SystemTime::now()).unwrap().is_empty());
}
