//! The targets, and what each promises.
use crate::Target;
use stado_fleet::document::{Document, lookup_self};
use stado_fleet::{directory, validate};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// All of them.
pub fn all() -> Vec<Target> {
    vec![api_body(), state_file(), registry(), http_request()]
}

/// Bodies of the control API: answered, never more lenient than JSON.
pub fn api_body() -> Target {
    let seeds = [
        r#"{"name":"checkout.postgres","kind":"tcp","source":"process","backend":{"host":"127.0.0.1","port":49382}}"#,
        r#"{"name":"a","kind":"http","http_host":"a.test","app_protocol":"h2c","backend":{"host":"::1","port":1},"preferred_port":-1,"ttl_seconds":3600}"#,
        r#"{"NAME":"\u0068\ud83d\ude00","Backend":{"HOST":"x","pOrt":1e3}} trailing"#,
        r#"{"port":15432}"#,
        "null",
        "",
    ];
    Target {
        name: "api_body",
        check: |bytes| shape(stado_resolver::fuzz::api_body(bytes)),
        seeds: seeds.map(|seed| seed.as_bytes().to_vec()).into(),
        words: &[
            "\"name\":",
            "\"backend\":{",
            "\"port\":",
            "\"ttl_seconds\":",
            "\\u0000",
            "\\ud800",
            "null",
            "1e999",
            "-0",
        ],
    }
}

/// Raw request bytes: passed on or refused, however they are split; never bytes for the backend of a refused request.
pub fn http_request() -> Target {
    let seeds = [
        "GET / HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n\r\n",
        "POST /a?b HTTP/1.1\r\nHost: a.test:80\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
        "GET http://b.test/x HTTP/1.0\r\nConnection: close, X\r\nX: y\r\n\r\n",
        "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframes",
        "\r\nOPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    ];
    Target {
        name: "http_request",
        check: |bytes| shape(stado_resolver::fuzz::http_request(bytes)),
        seeds: seeds.map(|seed| seed.as_bytes().to_vec()).into(),
        words: &[
            "\r\n",
            "\n",
            "\r",
            "Host: b\r\n",
            "Content-Length: 5\r\n",
            "Content-Length: 6\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Transfer-Encoding: gzip\r\n",
            "Connection: host\r\n",
            " : ",
            "0\r\n\r\n",
            "HTTP/1.0",
            "http://",
            "ffffffffffffffff",
        ],
    }
}

/// State files: read or refused; what was read survives being written.
pub fn state_file() -> Target {
    let seeds = [
        r#"{"version":1,"tcp_ports":{"checkout.postgres":15432,"a":1}}"#,
        "{\n  \"version\": 0,\n  \"other\": [1, {\"a\": 1.50}],\n  \"tcp_ports\": {}\n}",
        r#"{"version":2,"tcp_ports":null}"#,
        "",
    ];
    Target {
        name: "state_file",
        check: |bytes| shape(stado_resolver::fuzz::state_file(bytes)),
        seeds: seeds.map(|seed| seed.as_bytes().to_vec()).into(),
        words: &["\"version\":", "\"tcp_ports\":{", "9223372036854775808", "-1", "1.0", "null", "\"a\":"],
    }
}

/// Registry documents: read or refused, kept as their bytes, and judged without a panic; what validates has an index.
pub fn registry() -> Target {
    Target {
        name: "registry",
        check: check_registry,
        seeds: vec![
            include_bytes!("../../../examples/registries/small.json").to_vec(),
            include_bytes!("../../../examples/registries/typical.json").to_vec(),
            include_bytes!("../../../examples/registries/future.json").to_vec(),
        ],
        words: &[
            "\"targets\":[",
            "\"service_directory\":{",
            "\"generation\":",
            "\"consumers\":",
            "\"endpoints\":",
            "\"ssh\":",
            "tcp://127.0.0.1:",
            "http://[::1]:",
            "null",
            "1e400",
        ],
    }
}

fn check_registry(bytes: &[u8]) -> u64 {
    let Ok(document) = Document::parse(bytes.to_vec()) else { return 0 };
    assert_eq!(document.bytes(), bytes, "an unedited document passes as its bytes");
    let again = Document::from_value(document.value().clone());
    let again = Document::parse(again.bytes().to_vec());
    assert!(again.is_ok(), "what was read can be written and read: {again:?}");
    let unknown = document.unknown_keys().len();
    match validate::validate(document) {
        Err(invalid) => {
            assert!(!invalid.0.is_empty(), "a refusal has a reason");
            // The kind of a finding is its words; names and numbers in it are the input's.
            let words =
                |text: &str| text.split(' ').filter(|w| w.bytes().all(|b| b.is_ascii_lowercase())).collect::<String>();
            shape(invalid.0.iter().map(|finding| words(&finding.sentence)).collect::<Vec<_>>())
        }
        Ok(valid) => {
            let _ = lookup_self(&valid.registry, "worker", "me");
            let hosts: Vec<_> = valid.registry.targets.keys().cloned().collect();
            for host in &hosts {
                let _ = directory::Directory::build(Arc::clone(&valid.registry), host.clone())
                    .resolve("checkout.db", "shop");
            }
            shape((unknown, hosts.len()))
        }
    }
}

fn shape(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
