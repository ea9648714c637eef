use super::*;

fn home() -> (tempfile::TempDir, Lookup) {
    let dir = tempfile::tempdir().unwrap();
    let lookup = Lookup {
        config_dir: Some(dir.path().join(".docker")),
        sockets: vec!["/nowhere/docker.sock".into(), dir.path().join("mine.sock")],
        ..Lookup::default()
    };
    (dir, lookup)
}

fn write_context(lookup: &Lookup, name: &str, meta: &str) {
    let id = hex::encode(Sha256::digest(name));
    let dir = lookup.config_dir.as_ref().unwrap().join("contexts/meta").join(id);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("meta.json"), meta).unwrap();
}

const BOX: &str =
    r#"{"Name":"box","Metadata":{},"Endpoints":{"docker":{"Host":"ssh://me@box","SkipTLSVerify":false}}}"#;

fn found(lookup: &Lookup) -> String {
    lookup.find().map_or_else(|error| error.to_string(), |endpoint| endpoint.to_string())
}

#[test]
fn docker_host_outranks_contexts_and_contexts_outrank_sockets() {
    let (dir, mut lookup) = home();
    assert_eq!(found(&lookup), "unix:///nowhere/docker.sock", "the first, when none is there");
    std::fs::write(dir.path().join("mine.sock"), "").unwrap();
    assert_eq!(found(&lookup), format!("unix://{}", dir.path().join("mine.sock").display()));
    write_context(&lookup, "box", BOX);
    std::fs::write(lookup.config_dir.as_ref().unwrap().join("config.json"), r#"{"auths":{},"currentContext":"box"}"#)
        .unwrap();
    assert_eq!(found(&lookup), "ssh://me@box");
    lookup.context = Some("default".into());
    assert!(found(&lookup).ends_with("mine.sock"), "default is no context");
    lookup.host = Some("tcp://127.0.0.1:2375".into());
    assert_eq!(found(&lookup), "tcp://127.0.0.1:2375");
    lookup.tls = true;
    assert!(found(&lookup).contains("TLS is not served"));
}

#[test]
fn a_context_that_is_not_there_is_named() {
    let (_dir, mut lookup) = home();
    lookup.context = Some("gone".into());
    assert!(found(&lookup).starts_with(r#"docker context "gone" cannot be read"#), "{}", found(&lookup));
    write_context(&lookup, "gone", "{");
    assert!(found(&lookup).contains("is malformed"));
    write_context(&lookup, "gone", r#"{"Endpoints":{}}"#);
    assert!(found(&lookup).contains("names no engine"));
}
