use super::*;
use crate::mesh::rig::{Home, context, register, request};
use stado_fleet::wire::RegisterRequest;

fn ask(path: &str, headers: &[(&str, &str)]) -> OwnRequest {
    OwnRequest {
        method: "GET".into(),
        path: path.into(),
        query: String::new(),
        host: "stado.localhost".into(),
        authority: "stado.localhost:8088".into(),
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

fn text(answer: OwnResponse) -> String {
    match answer.body {
        OwnBody::Full(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        OwnBody::Stream(_) => panic!("a stream"),
    }
}

async fn event(stream: &mut tokio::sync::mpsc::Receiver<Bytes>) -> serde_json::Value {
    loop {
        let text = String::from_utf8(stream.recv().await.unwrap().to_vec()).unwrap();
        if let Some(data) = text.strip_prefix("event: rows\ndata: ") {
            return serde_json::from_str(data.trim()).unwrap();
        }
    }
}

#[tokio::test]
async fn it_lists_every_service_in_the_form_that_is_asked_for() {
    let home = Home::new();
    let mesh = home.start();
    mesh.set_router(crate::http::Listening { http: Some(8088), ..crate::http::Listening::default() });
    let tcp = register(&mesh, "checkout.db").await.frontend.endpoint();
    let web = RegisterRequest { kind: "http".into(), ..request("web", 9) };
    mesh.register(web, None).await.unwrap();
    let index = Index::new(&mesh, context().ledger, None);
    let html = text(index.respond(&ask("/", &[("Accept", "text/html")])));
    assert!(html.contains("href=\"http://web.localhost:8088\"") && html.contains(&tcp), "{html}");
    assert!(html.contains("2 services: 2 ready"));
    let json: serde_json::Value =
        serde_json::from_str(&text(index.respond(&ask("/", &[("Accept", "application/json")])))).unwrap();
    assert_eq!(
        (&json["services"][0]["name"], &json["services"][1]["place"]),
        (&"checkout.db".into(), &"127.0.0.1:9".into())
    );
    assert!(text(index.respond(&ask("/", &[]))).contains("web  ready  http://web.localhost:8088  127.0.0.1:9"));
}

#[tokio::test]
async fn pages_of_other_sites_read_nothing_and_nothing_is_changed() {
    let home = Home::new();
    let mesh = home.start();
    let index = Index::new(&mesh, context().ledger, None);
    let status = |headers: &[(&str, &str)]| index.respond(&ask("/services.json", headers)).status;
    assert_eq!(status(&[]), 200);
    assert_eq!(status(&[("Origin", "http://stado.localhost:8088")]), 200);
    assert_eq!(status(&[("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "cors")]), 200);
    assert_eq!(status(&[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]), 200);
    for foreign in [
        &[("Origin", "http://evil.example")] as &[(&str, &str)],
        &[("Origin", "http://web.localhost:8088")],
        &[("Origin", "null")],
        &[("Origin", "http://stado.localhost:8088"), ("Origin", "http://evil.example")],
        &[("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "no-cors")],
        &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")],
    ] {
        assert_eq!(status(foreign), 403, "{foreign:?}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get"] {
        let request = OwnRequest { method: method.into(), ..ask("/", &[]) };
        assert_eq!(index.respond(&request).status, 405, "{method}");
    }
    assert_eq!(index.respond(&ask("/../etc", &[])).status, 404);
}

#[tokio::test]
async fn what_is_not_there_or_not_allowed_is_a_page_like_all_others() {
    let home = Home::new();
    let mesh = home.start();
    let index = Index::new(&mesh, context().ledger, None);
    let post = |accept: &str| OwnRequest { method: "POST".into(), ..ask("/", &[("Accept", accept)]) };
    let absent = |accept: &str| ask("/no<where>", &[("Accept", accept)]);
    let foreign = |accept: &str| ask("/", &[("Accept", accept), ("Origin", "http://evil.example")]);
    for (status, code, request) in [
        (404, "no_page", &absent as &dyn Fn(&str) -> OwnRequest),
        (405, "read_only", &post),
        (403, "foreign", &foreign),
    ] {
        let json = index.respond(&request("application/json"));
        assert!(json.headers.contains(&("Content-Type", "application/json".to_owned())), "{:?}", json.headers);
        let json: serde_json::Value = serde_json::from_str(&text(json)).unwrap();
        assert_eq!((&json["status"], &json["error"]["code"]), (&status.into(), &code.into()));
        let html = text(index.respond(&request("text/html")));
        assert!(html.starts_with("<!doctype html>") && html.contains(&format!("<h1>{status} ")), "{html}");
        assert!(!html.contains("no<where>"), "{html}");
        assert!(text(index.respond(&request("*/*"))).starts_with(&format!("{status} ")));
    }
    assert!(index.respond(&post("*/*")).headers.contains(&("Allow", "GET, HEAD".to_owned())));
}

#[tokio::test]
async fn everything_is_served_from_here_under_a_strict_policy() {
    let home = Home::new();
    let mesh = home.start();
    let index = Index::new(&mesh, context().ledger, None);
    for path in ["/", "/app.js", "/app.css", "/icon.svg", "/services.json", "/story?id=x", "/fleet.svg", "/nothing"] {
        let answer = index.respond(&ask(path, &[("Accept", "text/html")]));
        let policy = answer.headers.iter().find(|(name, _)| *name == "Content-Security-Policy").unwrap().1.clone();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(answer.headers.contains(&("X-Content-Type-Options", "nosniff".to_owned())));
        let body = text(answer);
        assert!(!body.contains("style=") && !body.contains("onclick") && !body.contains("innerHTML"), "{path}");
        let own = body.replace("http://www.w3.org/2000/svg", "");
        assert!(!own.contains("src=\"http") && !own.contains("url(http") && !own.contains("<script>"), "{path}");
    }
}

#[tokio::test]
async fn what_others_wrote_is_text_in_every_row() {
    let home = Home::new();
    let mesh = home.start();
    let evil = "<script>alert(1)</script>\u{1b}[31m\"";
    let row = row::Row {
        name: evil.into(),
        consumer: evil.into(),
        address: format!("http://{evil}"),
        place: evil.into(),
        reason: evil.into(),
        since: evil.into(),
        last_error: Some(stado_fleet::wire::LastError { at: evil.into(), cause: evil.into(), hop: None }),
        ..row::Row::default()
    };
    let html = draw::page(std::slice::from_ref(&row), "");
    assert_eq!(html.matches("<script").count(), 1, "{html}");
    assert!(!html.contains('\u{1b}') && !draw::text(&[row]).contains('\u{1b}'));
    drop(mesh);
}

#[tokio::test]
async fn the_stream_tells_of_a_service_that_comes_goes_and_comes_back() {
    let home = Home::new();
    let mesh = home.start();
    let index = Index::new(&mesh, context().ledger, None);
    let OwnBody::Stream(mut stream) = index.respond(&ask("/events", &[])).body else { panic!("no stream") };
    let first = event(&mut stream).await;
    assert_eq!((&first["whole"], first["rows"].as_array().unwrap().len()), (&true.into(), 0));
    let lease = register(&mesh, "web").await;
    let came = event(&mut stream).await;
    assert_eq!((&came["rows"][0]["name"], &came["rows"][0]["state"]), (&"web".into(), &"ready".into()));
    mesh.deregister(&lease.registration_id, Some(&lease.lease_token)).unwrap();
    let left = event(&mut stream).await;
    assert_eq!(left["rows"][0]["state"], "unavailable");
    assert_eq!(left["rows"][0]["reason"], "its producer deregistered");
    register(&mesh, "web").await;
    assert_eq!(event(&mut stream).await["rows"][0]["state"], "ready");
    mesh.forget("web", true).await.unwrap();
    assert_eq!(event(&mut stream).await["gone"][0], "mesh/web");
}

#[tokio::test]
async fn readers_are_bounded_and_none_keeps_the_daemon_alive() {
    let home = Home::new();
    let mesh = home.start();
    let index = Index::new(&mesh, context().ledger, None);
    let open = || match index.respond(&ask("/events", &[])).body {
        OwnBody::Stream(stream) => Some(stream),
        OwnBody::Full(_) => None,
    };
    let mut streams: Vec<_> = std::iter::from_fn(open).collect();
    assert!(!streams.is_empty() && streams.len() < 1000);
    streams.pop();
    crate::mesh::rig::until("the place is free again", || open().is_some()).await;
    drop(mesh);
    let last = streams.first_mut().unwrap();
    while last.recv().await.is_some() {}
}

#[tokio::test]
async fn the_overview_has_every_service_with_its_counters_and_the_router() {
    let home = Home::new();
    let mesh = home.start();
    mesh.set_router(crate::http::Listening { http: Some(8088), ..crate::http::Listening::default() });
    register(&mesh, "checkout.db").await;
    let source = Source::new(&mesh, context().ledger, None);
    let seen = source.overview();
    assert_eq!(seen.router.index.as_deref(), Some("http://stado.localhost:8088/"));
    assert_eq!((seen.router.http, seen.router.https, seen.pid), (Some(8088), None, std::process::id()));
    let row = seen.services.first().unwrap();
    assert_eq!((row.name.as_str(), row.state.as_str(), row.from.as_str()), ("checkout.db", "ready", "mesh"));
    drop(mesh);
    assert!(source.overview().services.is_empty(), "a daemon is kept alive");
}

#[tokio::test]
async fn the_story_of_a_service_is_one_click_away() {
    let home = Home::new();
    let mesh = home.start();
    let tcp = register(&mesh, "checkout.db").await.frontend.endpoint();
    let index = Index::new(&mesh, mesh.ledger().clone(), None);
    let html = text(index.respond(&ask("/", &[("Accept", "text/html")])));
    assert!(
        html.contains("<a href=\"/story?id=mesh/checkout.db\">checkout.db</a>") && !html.contains("<svg"),
        "{html}"
    );
    let story = |id: &str| index.respond(&OwnRequest { query: format!("id={id}"), ..ask("/story", &[]) });
    let told = text(story("mesh/checkout.db"));
    assert!(told.starts_with("checkout.db is ready since ") && told.contains(&tcp), "{told}");
    assert!(told.contains("its producer listens at 127.0.0.1:9"), "{told}");
    assert_eq!((story("mesh/nothing").status, story("%zz").status), (404, 404));
}
