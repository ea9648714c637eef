//! The table of mesh contract §1, row by row.
use super::*;

const BACKEND: &str = r#""backend":{"host":"127.0.0.1","port":9}"#;

#[tokio::test]
async fn health_list_and_heads_have_the_contracts_bytes() {
    let server = Server::start();
    let health = server.get("/v1/health").await;
    assert_eq!(health.body, "{\"status\":\"ok\",\"version\":\"0.1.0\",\"docker\":\"disabled\"}\n");
    assert_eq!(health.header("Content-Type"), Some("application/json"));
    assert_eq!(health.header("Content-Length"), Some("54"));
    assert_eq!(server.get("/v1/services").await.body, "{\"services\":[]}\n");
    let head = server.ask("HEAD /v1/health", "", "").await;
    assert_eq!((head.status, head.body.as_str(), head.header("Content-Length")), (200, "", Some("54")));
    server.mesh.set_docker_status(crate::mesh::DockerStatus::Degraded);
    assert!(server.get("/v1/health").await.body.contains(r#""status":"ok","version":"0.1.0","docker":"degraded""#));
}

#[tokio::test]
async fn unknown_paths_and_wrong_methods_are_plain_text() {
    let server = Server::start();
    for path in ["/", "/v1/services/", "/v1/nope", "/v1/services/a/b/c"] {
        let reply = server.get(path).await;
        assert_eq!((reply.status, reply.body.as_str()), (404, "404 page not found\n"), "{path}");
        assert_eq!(reply.header("Content-Type"), Some("text/plain; charset=utf-8"));
    }
    for (line, allow) in [
        ("POST /v1/health", "GET, HEAD"),
        ("DELETE /v1/services", "GET, HEAD"),
        ("GET /v1/registrations", "POST"),
        ("GET /v1/registrations/X/heartbeat", "POST"),
        ("POST /v1/registrations/X", "DELETE"),
    ] {
        let reply = server.ask(line, "", "").await;
        assert_eq!((reply.status, reply.body.as_str()), (405, "Method Not Allowed\n"), "{line}");
        assert_eq!(reply.header("Allow"), Some(allow), "{line}");
    }
}

#[tokio::test]
async fn one_life_of_a_registration() {
    let server = Server::start();
    let reply =
        server.post("/v1/registrations", &format!(r#"{{"NAME":"x",{BACKEND},"app_protocol":"pg"}} junk"#)).await;
    assert_eq!(reply.status, 201);
    let answer = reply.json();
    let text = |key: &str| answer[key].as_str().unwrap().to_owned();
    let (id, token, expires) = (text("registration_id"), text("lease_token"), text("expires_at"));
    let port = answer["frontend"]["port"].as_u64().unwrap();
    assert_eq!(
        reply.body,
        format!(
            "{{\"registration_id\":\"{id}\",\"lease_token\":\"{token}\",\"name\":\"x\",\"frontend\":{{\"host\":\"127.0.0.1\",\"port\":{port}}},\"expires_at\":\"{expires}\",\"ttl_seconds\":15}}\n"
        )
    );
    assert!(id.len() == 24 && token.len() == 64 && expires.len() == 20 && expires.ends_with('Z'));
    let service = format!(
        "\"name\":\"x\",\"kind\":\"tcp\",\"app_protocol\":\"pg\",\"status\":\"ready\",\"frontend\":{{\"host\":\"127.0.0.1\",\"port\":{port}}}"
    );
    assert_eq!(server.get("/v1/services/x").await.body, format!("{{{service}}}\n"));
    assert_eq!(server.get("/v1/services").await.body, format!("{{\"services\":[{{{service}}}]}}\n"));
    assert_eq!(
        server.get("/v1/services/x/inspect").await.body,
        format!(
            "{{{service},\"backend\":{{\"host\":\"127.0.0.1\",\"port\":9}},\"source\":\"process\",\"owner_key\":\"process:{id}\",\"producer_id\":\"{id}\"}}\n"
        )
    );
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let beat = server.ask(&format!("POST /v1/registrations/{id}/heartbeat"), &bearer, "ignored").await;
    assert_eq!((beat.status, beat.body.len()), (200, "{\"expires_at\":\"2026-11-30T01:03:00Z\"}\n".len()));
    for wrong in ["", "Authorization: bearer x\r\n", "Authorization: Bearer x\r\n", "Authorization: Basic x\r\n"] {
        let refused = server.ask(&format!("DELETE /v1/registrations/{id}"), wrong, "").await;
        assert_eq!(refused.body, "{\"error\":{\"code\":\"unauthorized\",\"message\":\"invalid lease token\"}}\n");
        assert_eq!(refused.status, 401);
    }
    let gone = server.ask(&format!("DELETE /v1/registrations/{id}"), &bearer, "").await;
    assert_eq!((gone.status, gone.body.as_str(), gone.header("Content-Type")), (204, "", None));
    let again = server.ask(&format!("DELETE /v1/registrations/{id}"), &bearer, "").await;
    assert_eq!((again.status, again.message()), (404, format!("registration {id} is unknown")));
    let after = server.get("/v1/services/x/inspect").await.json();
    assert_eq!(after["owner_key"], format!("process:{id}"), "the last producer is remembered");
    assert!(after.get("backend").is_none() && after["reason"].is_string() && after["since"].is_string());
}

#[tokio::test]
async fn refusals_have_the_contracts_codes_and_messages() {
    let server = Server::start();
    let with = |rest: &str| format!(r#"{{"name":"x",{BACKEND},{rest}}}"#);
    let backend = |host: &str, port: i64| format!(r#"{{"name":"x","backend":{{"host":"{host}","port":{port}}}}}"#);
    for (body, code, message) in [
        (String::new(), "invalid_request", "EOF"),
        ("{".into(), "invalid_request", "unexpected EOF"),
        (with(r#""owner_key":"k""#), "invalid_request", r#"json: unknown field "owner_key""#),
        (with(r#""source":"docker""#), "invalid_request", r#"source "docker" is not supported; use process or manual"#),
        (with(r#""ttl_seconds":2"#), "invalid_request", "ttl_seconds must be between 3 and 3600"),
        (with(r#""ttl_seconds":3601"#), "invalid_request", "ttl_seconds must be between 3 and 3600"),
        (
            r#"{"name":"stado","backend":{"host":"127.0.0.1","port":9},"kind":"http"}"#.into(),
            "invalid_request",
            r#"http_host "stado.localhost" is reserved: stado.localhost and all names under it are this daemon's own"#,
        ),
        (
            with(r#""kind":"http","http_host":"http://a/""#),
            "invalid_request",
            r#"http_host "http://a/" must be a hostname without scheme, path, or port"#,
        ),
        (r#"{"name":""}"#.into(), "invalid_name", "service name is empty"),
        (
            r#"{"name":"A_b"}"#.into(),
            "invalid_name",
            r#"service name "A_b" must match ^[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)*$"#,
        ),
        (r#"{"name":"x"}"#.into(), "invalid_backend", "backend port 0 out of range"),
        (backend("", 1), "invalid_backend", "backend host is empty"),
        (backend("10.0.0.5", 1), "invalid_backend", r#"backend host "10.0.0.5" is not a loopback address"#),
        (with(r#""kind":"udp""#), "unsupported_kind", r#"kind "udp" is not supported"#),
        // Check order: source, name, kind, backend, lease length, hostname.
        (
            r#"{"source":"docker","name":"A","kind":"udp"}"#.into(),
            "invalid_request",
            r#"source "docker" is not supported; use process or manual"#,
        ),
        (r#"{"name":"x","kind":"udp","ttl_seconds":1}"#.into(), "unsupported_kind", r#"kind "udp" is not supported"#),
        (r#"{"name":"x","kind":"http","ttl_seconds":1}"#.into(), "invalid_backend", "backend port 0 out of range"),
        (with(r#""kind":"http","ttl_seconds":1"#), "invalid_request", "ttl_seconds must be between 3 and 3600"),
    ] {
        let reply = server.post("/v1/registrations", &body).await;
        assert_eq!((reply.status, reply.json()["error"]["code"].as_str()), (400, Some(code)), "{body}");
        assert_eq!(reply.message(), message, "{body}");
    }
    assert_eq!(server.get("/v1/services/x").await.message(), "service x is unknown");
    assert_eq!(server.get("/v1/services/a%2Fb").await.message(), "service a/b is unknown");
    let beat = server.post("/v1/registrations/NOPE/heartbeat", "").await;
    assert_eq!((beat.status, beat.message()), (404, "registration NOPE is unknown".into()));
}

#[tokio::test]
async fn messages_are_escaped_as_they_always_were() {
    let server = Server::start();
    let reply = server.get("/v1/services/%3Ca%26b%3E").await;
    assert!(reply.body.contains(r"service \u003ca\u0026b\u003e is unknown"), "{}", reply.body);
}

#[tokio::test]
async fn a_long_body_is_cut_at_one_mebibyte() {
    let server = Server::start();
    let long = format!(r#"{{"name":"{}"}}"#, "a".repeat(2 << 20));
    let reply = server.post("/v1/registrations", &long).await;
    assert_eq!((reply.status, reply.message()), (400, "unexpected EOF".into()));
    let padded = format!(r#"{{"name":"x",{BACKEND}}}{}"#, " ".repeat(2 << 20));
    assert_eq!(server.post("/v1/registrations", &padded).await.status, 201);
}

#[tokio::test]
async fn conflicts_are_409() {
    let server = Server::start();
    let body = format!(r#"{{"name":"x",{BACKEND}}}"#);
    assert_eq!(server.post("/v1/registrations", &body).await.status, 201);
    let reply = server.post("/v1/registrations", &body).await;
    assert_eq!((reply.status, reply.message()), (409, "service x is already owned by another registration".into()));
}

#[tokio::test]
async fn the_host_does_not_matter_and_an_origin_is_refused() {
    let server = Server::start();
    let strange = server.raw(b"GET /v1/health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").await;
    assert!(strange.starts_with("HTTP/1.1 200 OK\r\n"));
    let none = server.raw(b"GET /v1/health HTTP/1.0\r\n\r\n").await;
    assert!(none.starts_with("HTTP/1.0 200 OK\r\n"), "{none}");
    let page = server.ask("GET /v1/health", "Origin: http://localhost\r\n", "").await;
    assert_eq!(page.status, 403);
    assert!(page.message().contains("Origin"));
}

#[tokio::test]
async fn several_requests_share_a_connection() {
    let server = Server::start();
    let one = "GET /v1/health HTTP/1.1\r\nHost: devmesh\r\n\r\n";
    let last = "GET /v1/health HTTP/1.1\r\nHost: devmesh\r\nConnection: close\r\n\r\n";
    let both = server.raw(format!("{one}{last}").as_bytes()).await;
    assert_eq!(both.matches("HTTP/1.1 200 OK").count(), 2);
}

#[tokio::test]
async fn a_lost_answer_can_be_asked_for_again() {
    let server = Server::start();
    let body = format!(r#"{{"name":"x",{BACKEND}}}"#);
    let key = "Idempotency-Key: k-1\r\n";
    let first = server.ask("POST /v1/registrations", key, &body).await;
    let second = server.ask("POST /v1/registrations", key, &body).await;
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.body, second.body);
    let other = server.ask("POST /v1/registrations", key, &format!(r#"{{"name":"y",{BACKEND}}}"#)).await;
    assert_eq!((other.status, other.json()["error"]["code"].as_str()), (422, Some("invalid_request")));
    assert!(other.message().contains("k-1"));
    let bad = server.ask("POST /v1/registrations", "Idempotency-Key: \r\n", &body).await;
    assert_eq!(bad.status, 400);
}

#[tokio::test]
async fn forget_pin_and_rename_over_the_wire() {
    let server = Server::start();
    let body = format!(r#"{{"name":"x",{BACKEND}}}"#);
    server.post("/v1/registrations", &body).await;
    let free = (server.home.first_port..).find(|port| *port != server.mesh.resolve("x").unwrap().frontend.port);
    let pinned = server.post("/v1/services/x/pin", &format!(r#"{{"port":{}}}"#, free.unwrap())).await;
    assert_eq!((pinned.status, pinned.json()["frontend"]["port"].as_u64()), (200, free.map(u64::from)));
    assert_eq!(server.post("/v1/services/x/pin", "{}").await.message(), "port 0 out of range");
    assert_eq!(server.post("/v1/services/x/rename", r#"{"name":"y"}"#).await.status, 200);
    assert_eq!(server.get("/v1/services/x").await.status, 404);
    assert_eq!(server.ask("DELETE /v1/services/y", "", "").await.status, 409);
    assert_eq!(server.ask("DELETE /v1/services/y?force=true", "", "").await.status, 204);
    assert_eq!(server.ask("DELETE /v1/services/y", "", "").await.status, 404);
}

#[tokio::test]
async fn events_are_lines_or_server_sent() {
    let server = Server::start();
    for (accept, snapshot, change) in [
        ("", "{\"event\":\"snapshot\",\"services\":[", "{\"event\":\"changed\",\"service\":{\"name\":\"l\""),
        (
            "Accept: text/event-stream\r\n",
            "event: snapshot\ndata: {",
            "event: changed\ndata: {\"event\":\"changed\",\"service\":{\"name\":\"s\"",
        ),
    ] {
        let mut stream = UnixStream::connect(server.path()).await.unwrap();
        let request = format!("GET /v1/events HTTP/1.1\r\nHost: devmesh\r\n{accept}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut seen = String::new();
        read_until(&mut stream, &mut seen, snapshot).await;
        let name = if accept.is_empty() { "l" } else { "s" };
        crate::mesh::rig::register(&server.mesh, name).await;
        read_until(&mut stream, &mut seen, change).await;
    }
}

async fn read_until(stream: &mut UnixStream, seen: &mut String, wanted: &str) {
    let mut buffer = [0u8; 4096];
    while !seen.contains(wanted) {
        let reading = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut buffer));
        let length = reading.await.unwrap_or_else(|_| panic!("no {wanted:?} in {seen:?}")).unwrap();
        assert_ne!(length, 0, "ended without {wanted:?}: {seen:?}");
        seen.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
    }
}

#[tokio::test]
async fn metrics_count_what_happened() {
    let server = Server::start();
    crate::mesh::rig::register(&server.mesh, "x").await;
    let page = server.get("/metrics").await;
    for line in [
        "stado_mesh_registrations_total{result=\"created\"} 1",
        "stado_mesh_services{status=\"ready\"} 1",
        "stado_mesh_leases 1",
        "stado_connections_opened_total{service=\"x\",consumer=\"\"} 0",
        "# EOF",
    ] {
        assert!(page.body.contains(line), "{line} in {}", page.body);
    }
    assert!(page.header("Content-Type").unwrap().starts_with("application/openmetrics-text"));
    let document = server.get("/v1/openapi.json").await;
    assert_eq!(document.body, openapi::DOCUMENT);
}

#[tokio::test]
async fn connections_of_a_known_service_are_listed_and_an_unknown_one_is_refused() {
    let server = Server::start();
    let backend = crate::mesh::rig::echo().await;
    let made = server.mesh.register(crate::mesh::rig::request("x", backend), None).await.unwrap();
    let client = tokio::net::TcpStream::connect(("127.0.0.1", made.frontend.port)).await.unwrap();
    let from = client.local_addr().unwrap().to_string();
    crate::mesh::rig::until("it is open", || server.mesh.connections("x").unwrap().counters.opened == 1).await;
    let answer = server.get("/v1/services/x/connections").await;
    let body = answer.json();
    assert_eq!((answer.status, body["service"].as_str(), body["ended"].as_array()), (200, Some("x"), Some(&vec![])));
    assert_eq!((body["open"][0]["client"].as_str(), body["open"][0]["outcome"].as_str()), (Some(&*from), Some("open")));
    assert_eq!(body["counters"]["refused"]["loop"], 0);
    let unknown = server.get("/v1/services/y/connections").await;
    assert_eq!((unknown.status, unknown.json()["error"]["code"].as_str()), (404, Some("service_not_found")));
}

#[tokio::test]
async fn a_stop_ends_streams_and_removes_the_socket() {
    let server = Server::start();
    let mut stream = UnixStream::connect(server.path()).await.unwrap();
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nHost: devmesh\r\n\r\n").await.unwrap();
    let mut seen = String::new();
    read_until(&mut stream, &mut seen, "snapshot").await;
    server.stop.cancel();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "the stream ends, it is not cut");
    let path = server.path();
    server.serving.await.unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn one_answer_tells_everything_that_this_host_serves() {
    let server = Server::start();
    let made = server.mesh.register(crate::mesh::rig::request("x", 9), None).await.unwrap();
    let answer = server.get("/v1/overview").await;
    let body = answer.json();
    let row = &body["services"][0];
    assert_eq!((answer.status, body["services"].as_array().map(Vec::len)), (200, Some(1)));
    assert_eq!(row["address"].as_str(), Some(&*made.frontend.endpoint()));
    assert_eq!((&row["state"], &row["from"], &row["place"]), (&"ready".into(), &"mesh".into(), &"127.0.0.1:9".into()));
    assert!(body["router"]["reason"].as_str().unwrap().contains("--http-enabled"), "{body}");
    assert!(row["traffic"]["opened"] == 0 && body["at_ms"].as_i64().unwrap() > 0);
}
