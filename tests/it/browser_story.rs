//! What a person sees: the index and a service over HTTPS, in a real browser.
use crate::support::home::{DEVMESHD, Home, STADO};
use crate::support::process::{Process, run};
use crate::support::tcp::echo;
use crate::support::webdriver::Browser;
use crate::support::{PATIENCE, ports, program, wait_until};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

/// A page for every request; on a port of the system's choice until the test ends.
fn page(title: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let body = format!("<!doctype html><title>{title}</title><h1>{title}</h1>");
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
                for _ in lines.filter(String::is_empty) {
                    if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn serve(home: &Home, args: &[&str]) -> Process {
    let mut daemon = home.start("devmeshd", DEVMESHD, &[&["serve", "--http-enabled"], args].concat());
    wait_until("the daemon answers", PATIENCE, || {
        assert!(daemon.ended().is_none(), "{}", daemon.log());
        home.devmesh(&["health"]).code == 0
    });
    daemon
}

/// A producer that holds a registration until it ends.
fn produce(home: &Home, name: &str, backend: &str) -> Process {
    let args = ["service", "register", "--name", name, "--kind", "http", "--backend", backend];
    home.start(name, STADO, &args)
}

/// What the index says of one service: state, reason, address.
fn row(name: &str) -> String {
    format!(
        "const row = [...document.querySelectorAll('#rows tr')].find((row) => row.querySelector('th')?.textContent === '{name}');
         if (!row) return null;
         const text = (what) => row.querySelector(what)?.textContent ?? '';
         return [text('.state'), text('.why'), row.querySelector('td a')?.getAttribute('href') ?? ''];"
    )
}

#[test]
fn the_index_follows_a_service_that_comes_goes_and_returns_without_a_reload() {
    needs!("chromium", "chromedriver");
    let (home, lease) = (Home::new(), ports::one());
    let port = lease.port();
    let nowhere = ports::one();
    let addresses = [format!("127.0.0.1:{port}"), format!("127.0.0.1:{}", nowhere.port())];
    let _daemon = serve(&home, &["--http-addr", &addresses[0], "--https-addr", &addresses[1]]);
    let browser = Browser::start(&home, "browser");
    browser.open(&format!("http://stado.localhost:{port}/")).unwrap();
    browser.shows("return document.getElementById('live').textContent", &json!("live"));
    browser.shows("return document.getElementById('summary').textContent", &json!("0 services"));
    browser.eval("window.loaded = 'once'");

    let url = format!("http://web.localhost:{port}");
    let backend = page("Web");
    let producer = produce(&home, "web", &backend);
    browser.shows(&row("web"), &json!(["ready", "", url]));
    home.devmesh(&["register", "--name", "ledger.db", "--backend", &echo("x").to_string(), "--once", "--ttl", "600"])
        .ok();
    let _shop = produce(&home, "shop", &page("Shop"));
    browser.shows("return document.getElementById('summary').textContent", &json!("3 services: 3 ready"));

    assert!(producer.stop().success());
    browser.shows(&row("web"), &json!(["unavailable", "its producer deregistered", url]));
    keep(&home, &browser.screenshot());

    let _again = produce(&home, "web", &backend);
    browser.shows(&row("web"), &json!(["ready", "", url]));
    assert_eq!(browser.eval("return window.loaded"), "once", "the page was loaded again");
}

/// Every run makes the picture; the documentation's is renewed when asked for.
fn keep(home: &Home, picture: &[u8]) {
    assert!(picture.starts_with(b"\x89PNG") && picture.ends_with(b"IEND\xaeB`\x82"), "{} bytes", picture.len());
    home.write("index.png", picture);
    if std::env::var_os("STADO_UPDATE_IMAGES").is_some() {
        let images = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/images");
        std::fs::create_dir_all(images).unwrap();
        std::fs::write(format!("{images}/index.png"), picture).unwrap();
    }
}

#[test]
fn a_browser_that_trusts_the_local_authority_opens_a_service_over_https() {
    needs!("chromium", "chromedriver", "certutil");
    let (home, lease) = (Home::new(), ports::block(2));
    home.stado(&["tls", "init"]).ok();
    let addresses = [lease.port(), lease.last()].map(|port| format!("127.0.0.1:{port}"));
    let _daemon = serve(&home, &["--http-addr", &addresses[0], "--https-addr", &addresses[1]]);
    home.devmesh(&["register", "--name", "web", "--kind", "http", "--backend", &page("Web"), "--once", "--ttl", "600"])
        .ok();
    let url = home.devmesh(&["services", "resolve", "web", "--raw"]).ok().stdout.trim().to_owned();
    assert_eq!(url, format!("https://web.localhost:{}", lease.last()));

    // The browser's own warning is a page too.
    let stranger = Browser::start(&home, "stranger");
    let _ = stranger.open(&url);
    let warning = stranger.eval("return document.documentElement.textContent").to_string();
    assert!(warning.contains("ERR_CERT_AUTHORITY_INVALID"), "{warning}");
    drop(stranger);

    std::fs::create_dir_all(home.file(".pki/nssdb")).unwrap();
    let new = ["-N", "--empty-password", "-d", "sql:.pki/nssdb"];
    run(&mut home.command(program("certutil").unwrap(), &new)).ok();
    home.stado(&["tls", "trust", "--store", "nss"]).ok();
    let browser = Browser::start(&home, "friend");
    browser.open(&url).unwrap();
    let seen = browser.eval("return [document.title, location.protocol, isSecureContext]");
    assert_eq!(seen, json!(["Web", "https:", true]));
}
