use super::*;
use std::time::Duration;

fn flags(pairs: &[(&str, &str)]) -> MeshFlags {
    let mut flags = MeshFlags::default();
    for (name, value) in pairs {
        let slot = match *name {
            "config" => &mut flags.config,
            "tcp-frontend-min" => &mut flags.tcp_frontend_min,
            "tcp-frontend-max" => &mut flags.tcp_frontend_max,
            "lease-ttl" => &mut flags.lease_ttl,
            "http-enabled" => &mut flags.http_enabled,
            "http-addr" => &mut flags.http_addr,
            "http-cert-file" => &mut flags.http_cert_file,
            "shutdown-timeout" => &mut flags.shutdown_timeout,
            "tcp-frontend-host" => &mut flags.tcp_frontend_host,
            other => panic!("{other}"),
        };
        *slot = Some((*value).to_owned());
    }
    flags
}

fn refusal(pairs: &[(&str, &str)]) -> String {
    let env = Env::of([("HOME", "/h")]);
    MeshLayers::read(&flags(pairs), &env).unwrap().settings(&env).unwrap_err().0
}

fn config_file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn four_sources_in_order_with_provenance() {
    let file = config_file(r#"{"tcp_frontend_min": 24000}"#);
    let path = file.path().to_str().unwrap();
    let env = Env::of([("HOME", "/h"), ("DEVMESH_CONFIG", path), ("DEVMESH_TCP_FRONTEND_MIN", "24500")]);
    let all = MeshLayers::read(&flags(&[("tcp-frontend-min", "25000"), ("tcp-frontend-max", "25999")]), &env).unwrap();
    let lines: Vec<String> = all.layers.iter().map(ToString::to_string).collect();
    assert!(lines.contains(&"tcp-frontend-min: defaults 15000, config 24000, env 24500, flag 25000".to_owned()));
    assert_eq!(all.settings(&env).unwrap().port_min, 25000);
    let without_flag = MeshLayers::read(&flags(&[("tcp-frontend-max", "25999")]), &env).unwrap();
    assert_eq!(without_flag.settings(&env).unwrap().port_min, 24500);
    let file_only = Env::of([("HOME", "/h"), ("DEVMESH_CONFIG", path)]);
    let all = MeshLayers::read(&flags(&[("tcp-frontend-max", "25999")]), &file_only).unwrap();
    assert_eq!(all.settings(&file_only).unwrap().port_min, 24000);
}

#[test]
fn the_config_flag_wins_over_its_variable() {
    let (a, b) = (config_file(r#"{"lease_ttl":"20s"}"#), config_file(r#"{"lease_ttl":"30s"}"#));
    let env = Env::of([("HOME", "/h"), ("DEVMESH_CONFIG", a.path().to_str().unwrap())]);
    let all = MeshLayers::read(&flags(&[("config", b.path().to_str().unwrap())]), &env).unwrap();
    assert_eq!(all.settings(&env).unwrap().lease_ttl, Duration::from_secs(30));
}

#[test]
fn defaults_are_the_contracts() {
    let env = Env::of([("HOME", "/h")]);
    let settings = MeshLayers::read(&MeshFlags::default(), &env).unwrap().settings(&env).unwrap();
    assert_eq!(settings.socket, Path::new("/h/.devmesh/run/devmesh.sock"));
    assert_eq!(settings.state_path, Path::new("/h/.config/devmesh/state.json"));
    assert_eq!((settings.port_min, settings.port_max), (15000, 19999));
    assert_eq!(settings.idle_grace, Duration::from_secs(600));
    assert!(settings.unserved.is_empty());
}

#[test]
fn validation_says_what_the_contract_says() {
    assert_eq!(refusal(&[("tcp-frontend-min", "20000")]), "invalid tcp frontend port range 20000-19999");
    assert_eq!(refusal(&[("tcp-frontend-host", "")]), "tcp frontend host is empty");
    assert_eq!(refusal(&[("lease-ttl", "2s")]), "lease_ttl must be between 3s and 1h0m0s");
    assert_eq!(refusal(&[("shutdown-timeout", "0")]), "shutdown_timeout must be positive");
    assert!(refusal(&[("lease-ttl", "bogus")]).starts_with("lease-ttl: invalid duration \"bogus\": "));
    assert!(refusal(&[("http-enabled", "true"), ("http-addr", "nope")]).starts_with("invalid http_addr \"nope\": "));
    assert_eq!(refusal(&[("http-cert-file", "/c.pem")]), "both http.cert_file and http.key_file are required for TLS");
}

#[test]
fn certificates_are_a_pair_and_a_list_and_an_authority_beside_the_state() {
    let list = "/a.pem:/a-key.pem,~/b.pem:~/b-key.pem";
    let env = Env::of([("HOME", "/h"), ("DEVMESH_HTTP_CERTIFICATES", list), ("DEVMESH_STATE", "/s/state.json")]);
    let tls = MeshLayers::read(&MeshFlags::default(), &env).unwrap().settings(&env).unwrap().tls;
    assert_eq!((tls.pair, tls.more.len()), (None, 2));
    assert_eq!(
        (tls.more[1].cert.as_path(), tls.more[1].key.as_path()),
        (Path::new("/h/b.pem"), Path::new("/h/b-key.pem"))
    );
    assert_eq!(tls.authority.as_deref(), Some(Path::new("/s/tls")));
    let env = Env::of([("HOME", "/h"), ("DEVMESH_HTTP_CERTIFICATES", "/a.pem")]);
    let error = MeshLayers::read(&MeshFlags::default(), &env).unwrap().settings(&env).unwrap_err();
    assert!(error.0.contains("write it as CERT:KEY"), "{error}");
}

#[test]
fn the_file_has_the_known_shape() {
    let value = serde_json::json!({
        "state_path": "/s", "tcp_frontend_min": 24000, "lease_ttl": null,
        "docker": {"allow_non_loopback_published_ports": true}, "http": null,
    });
    let file = file::map(&value).unwrap();
    assert!(file.values.contains(&("state", "/s".to_owned())));
    assert!(file.values.contains(&("docker-allow-non-loopback-published-ports", "true".to_owned())));
    assert!(!file.values.iter().any(|(name, _)| *name == "docker-enabled" || *name == "lease-ttl"));
    let error = |value: serde_json::Value| file::map(&value).unwrap_err().0;
    assert_eq!(error(serde_json::json!({"docker": "yes"})), "docker: expected a mapping, got string");
    assert_eq!(error(serde_json::json!({"http": [1]})), "http: expected a mapping, got list");
    assert_eq!(
        error(serde_json::json!({"runtime_idle_ttl": "10m"})),
        "runtime_idle_ttl is no longer supported: frontend listeners are kept until the daemon stops"
    );
}

#[test]
fn unknown_keys_are_named_with_the_nearest() {
    let file = file::map(&serde_json::json!({"docker": {"enabeld": true}, "something_else": 1, "dockr": {}})).unwrap();
    assert_eq!(file.warnings[0], "unknown key docker.enabeld is ignored; did you mean docker.enabled?");
    assert_eq!(file.warnings[1], "unknown key something_else is ignored");
    assert_eq!(file.warnings[2], "unknown key dockr is ignored; did you mean docker?");
}

#[test]
fn without_a_home_the_state_file_is_what_is_missing() {
    let env = Env::of([]);
    let error = MeshLayers::read(&MeshFlags::default(), &env).unwrap().settings(&env).unwrap_err();
    assert!(error.0.contains("neither HOME nor XDG_CONFIG_HOME is set"), "{error}");
}

#[test]
fn the_routers_section_is_off_until_it_is_asked_for_and_checked_when_it_is() {
    let env = Env::of([("HOME", "/h")]);
    let off = MeshLayers::read(&MeshFlags::default(), &env).unwrap().settings(&env).unwrap();
    assert_eq!(off.http, None);
    let file = config_file(
        r#"{"http":{"enabled":true,"http_addr":"127.0.0.1:80","access_log":"~/a.log","access_log_format":"combined",
            "head_bytes":32768,"service_requests":"7","idle_timeout":"1m"}}"#,
    );
    let env =
        Env::of([("HOME", "/h"), ("DEVMESH_CONFIG", file.path().to_str().unwrap()), ("DEVMESH_HTTP_H2_RESETS", "9")]);
    let all = MeshLayers::read(&MeshFlags::default(), &env).unwrap();
    assert_eq!(all.warnings, Vec::<String>::new());
    let http = all.settings(&env).unwrap().http.unwrap();
    let (plain, tls) = ("127.0.0.1:80".parse().unwrap(), "127.0.0.1:8443".parse().unwrap());
    assert_eq!((http.http, http.https), (Some(plain), Some(tls)));
    let access = http.access.unwrap();
    assert_eq!((access.path.as_path(), access.keep), (Path::new("/h/a.log"), 7));
    let limits = http.limits;
    assert_eq!((limits.head_bytes, limits.service_requests, limits.h2_resets), (32768, 7, 9));
    assert_eq!(limits.idle, Duration::from_secs(60));
}

#[test]
fn the_built_in_limits_are_the_documented_ones() {
    let env = Env::of([("HOME", "/h")]);
    let all = MeshLayers::read(&flags(&[("http-enabled", "true")]), &env).unwrap();
    let http = all.settings(&env).unwrap().http.unwrap();
    assert_eq!(http.limits, stado_resolver::http::Limits::default());
}

#[test]
fn a_router_that_others_would_reach_must_be_asked_for_twice() {
    let text = refusal(&[("http-enabled", "true"), ("http-addr", "0.0.0.0:8088")]);
    assert!(text.contains("--allow-beyond-this-machine 0.0.0.0"), "{text}");
    assert_eq!(
        refusal(&[("http-enabled", "true"), ("http-addr", "127.0.0.1:0")]),
        "invalid http_addr \"127.0.0.1:0\": name a port"
    );
}
