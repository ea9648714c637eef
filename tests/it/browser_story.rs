//! What a person sees: the index and a service over HTTPS, in a real browser.
use crate::support::fleet::Fleet;
use crate::support::home::{DEVMESHD, Home, STADO};
use crate::support::http::get;
use crate::support::ports::{self, Lease};
use crate::support::process::{Process, run};
use crate::support::tcp::echo;
use crate::support::webdriver::{Browser, ENTER, ESCAPE, TAB};
use crate::support::{PATIENCE, program, wait_until};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
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

/// A host of a fleet whose index has all that there is: a picture, routes, services with a URL and with a port.
struct Scene {
    fleet: Fleet,
    url: String,
    _port: Lease,
}

impl Scene {
    fn start() -> Self {
        let mut fleet = Fleet::on_loopback_without_sshd(&["desk", "tower"]);
        fleet.service("orders", "desk", "tcp", echo("x").port(), "shop");
        fleet.service("far", "tower", "tcp", 9, "shop");
        for service in ["orders", "far"] {
            fleet.adapter("desk", service, "shop");
        }
        let port = ports::one();
        let home = &mut fleet.host("desk").home;
        home.set("DEVMESH_HTTP_ENABLED", "true");
        home.set("DEVMESH_HTTP_ADDR", format!("127.0.0.1:{}", port.port()));
        fleet.push("desk").ok();
        fleet.host("desk").serve();
        fleet.host("desk").ready();
        let home = &fleet.host("desk").home;
        let register = |name: &str, kind: &str, backend: &str| {
            let args = ["register", "--name", name, "--kind", kind, "--backend", backend, "--once", "--ttl", "600"];
            home.devmesh(&args).ok();
        };
        register("web", "http", &page("Web"));
        register("ledger.db", "tcp", &echo("x").to_string());
        Self { url: format!("http://stado.localhost:{}/", port.port()), fleet, _port: port }
    }

    fn home(&self) -> &Home {
        &self.fleet.hosts[0].home
    }

    /// A browser at the index, which is live.
    fn browser(&self) -> Browser {
        let browser = Browser::start(self.home(), "browser");
        browser.open(&self.url).unwrap();
        browser.shows("return document.getElementById('live').textContent", &json!("live"));
        browser.shows("return document.querySelectorAll('#rows tr').length", &json!(4));
        browser
    }
}

/// What a person can act on, as texts; `seen` is the one that has the focus.
const FOCUS: &str = "
    const named = (node) => node.tagName.toLowerCase() + ' ' + (node.id || node.getAttribute('aria-label') || node.textContent.trim());
    const all = [...document.querySelectorAll('a[href], button, input, summary')].filter((node) => node.getClientRects().length);
    const seen = document.activeElement;
    const style = getComputedStyle(seen);
    const shown = seen.closest('svg') ? true : style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    const inside = seen.getBoundingClientRect();
    return [all.map(named), all.includes(seen) ? named(seen) : null, shown && inside.right > 0 && inside.bottom > 0];";

#[test]
fn every_link_and_button_is_reached_and_its_focus_seen_by_keyboard_alone() {
    needs!("chromium", "chromedriver");
    let scene = Scene::start();
    let browser = scene.browser();
    let all = browser.eval(FOCUS)[0].as_array().unwrap().clone();
    let mut reached = Vec::new();
    for _ in 0..all.len() {
        browser.press(TAB);
        let now = browser.eval(FOCUS);
        assert_eq!(now[2], true, "the focus on {} is not to be seen", now[1]);
        reached.push(now[1].clone());
    }
    assert_eq!(reached, all, "in the order of the page, none left out");
    assert!(all.iter().any(|what| what.as_str().unwrap().starts_with("button copy 127.0.0.1:")), "{all:?}");

    // What a person is on stays under their fingers while its row is drawn again.
    let at = "return document.activeElement.href ?? null";
    browser.eval("document.querySelector('#rows td a').focus()");
    let before = browser.eval(at);
    assert!(before.as_str().unwrap().starts_with("http://web.localhost:"), "{before}");
    browser.eval("window.line = document.activeElement.closest('tr')");
    get(port_of(&scene.url), "web.localhost", "");
    browser.shows("return window.line.isConnected", &json!(false));
    assert_eq!(browser.eval(at), before);

    // The search by its key, and a way to a story and back.
    browser.press("/");
    browser.press("orders");
    let visible = "return [...document.querySelectorAll('#rows tr')].filter((row) => !row.hidden).length";
    browser.shows(visible, &json!(1));
    browser.press(ESCAPE);
    browser.shows(visible, &json!(4));
    browser.eval("document.querySelector('#rows th a').focus()");
    browser.press(ENTER);
    browser.shows("return location.pathname", &json!("/story"));
    browser.press(TAB);
    assert_eq!(browser.eval(at), scene.url.as_str(), "the first stop leads back");
    browser.complains_of_nothing();
}

/// The least contrast of any text with what is behind it, and whose it is.
const CONTRAST: &str = "
    const light = (channel) => { const c = channel / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
    const parts = (color) => color.match(/[\\d.]+/g).map(Number);
    const of = (color) => { const [r, g, b] = parts(color); return 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b); };
    const behind = (node) => {
        for (let at = node; at; at = at.parentElement) {
            const color = getComputedStyle(at).backgroundColor;
            if ((parts(color)[3] ?? 1) > 0) return of(color);
        }
        return 1;
    };
    let least = [99, ''];
    for (const node of document.body.querySelectorAll('*')) {
        const text = [...node.childNodes].filter((child) => child.nodeType === 3).map((child) => child.data.trim()).join('');
        if (!text || !node.getClientRects().length) continue;
        const style = getComputedStyle(node);
        const [a, b] = [of(node.closest('svg') ? style.fill : style.color), behind(node)];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < least[0]) least = [ratio, node.tagName + ' ' + node.className + ' ' + text];
    }
    return [least[0] >= 4.5, least, of(getComputedStyle(document.body).backgroundColor) < 0.1];";

#[test]
fn the_pages_are_dark_where_that_is_preferred_and_readable_in_the_dark_and_the_light() {
    needs!("chromium", "chromedriver");
    let scene = Scene::start();
    let browser = scene.browser();
    let story = "return document.querySelector('#rows th a').href";
    for url in [scene.url.clone(), browser.eval(story).as_str().unwrap().to_owned()] {
        browser.open(&url).unwrap();
        for scheme in ["dark", "light"] {
            let preferred = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            browser.devtools("Emulation.setEmulatedMedia", &preferred);
            let seen = browser.eval(CONTRAST);
            assert_eq!(seen[0], true, "{url}, {scheme}: {}", seen[1]);
            assert_eq!(seen[2], scheme == "dark", "{url}, {scheme}");
        }
    }
    browser.complains_of_nothing();
}

#[test]
fn a_phone_shows_every_service_without_scrolling_sideways() {
    needs!("chromium", "chromedriver");
    let scene = Scene::start();
    let browser = scene.browser();
    browser.devtools(
        "Emulation.setDeviceMetricsOverride",
        &json!({"width": 375, "height": 700, "deviceScaleFactor": 2, "mobile": false}),
    );
    browser.shows("return innerWidth", &json!(375));
    let wide = "return [document.documentElement, document.querySelector('main')].every((box) => box.scrollWidth <= box.clientWidth)";
    assert_eq!(browser.eval(wide), true, "{}", browser.eval("return document.querySelector('main').scrollWidth"));
    // Each cell of each row is within the window.
    let cut = "return [...document.querySelectorAll('#rows th, #rows td, #rows a, #rows code, header *')]
        .filter((node) => node.getClientRects().length && node.getBoundingClientRect().right > innerWidth)
        .map((node) => node.textContent)";
    assert_eq!(browser.eval(cut), json!([]));
    let story = browser.eval("return document.querySelector('#rows th a').href").as_str().unwrap().to_owned();
    browser.open(&story).unwrap();
    assert_eq!(browser.eval("return document.documentElement.scrollWidth <= innerWidth"), true);
    browser.complains_of_nothing();
}

/// Counts what is drawn again: the rows, and texts of clocks that were set to what they said already.
const WATCH: &str = "
    window.touched = new Set();
    window.wasted = 0;
    window.beats = 0;
    setInterval(() => { window.beats += 1; }, 1000);
    new MutationObserver((all) => {
        for (const { type, target, addedNodes, removedNodes } of all) {
            if (target.nodeName === 'TIME') {
                if (addedNodes[0]?.data === removedNodes[0]?.data) window.wasted += 1;
                continue;
            }
            const whole = type === 'childList' && target.id === 'rows';
            for (const node of whole ? [...addedNodes, ...removedNodes] : [target]) {
                window.touched.add((node.closest ? node : node.parentElement).closest('tr')?.dataset.id ?? 'another');
            }
        }
    }).observe(document.getElementById('rows'), { subtree: true, childList: true, attributes: true, characterData: true });";

#[test]
fn of_a_thousand_services_only_the_row_that_changed_is_drawn_again() {
    needs!("chromium", "chromedriver");
    let (home, lease) = (Home::new(), ports::one());
    let port = lease.port();
    let _daemon = serve(&home, &["--http-addr", &format!("127.0.0.1:{port}")]);
    register_many(&home, 1000, &page("Web"));
    let browser = Browser::start(&home, "browser");
    browser.open(&format!("http://stado.localhost:{port}/")).unwrap();
    browser.shows("return document.getElementById('summary').textContent", &json!("1000 services: 1000 ready"));
    browser.shows("return document.querySelectorAll('#rows tr[data-id]').length", &json!(1000));
    browser.eval(WATCH);

    let rate = "return document.querySelector('[data-id=\"mesh/svc.0500\"] .rate').textContent";
    let counted = |n: u32| {
        assert_eq!(get(port, "svc-0500.localhost", "").0, 200);
        let total = if n == 1 { "1 request".to_owned() } else { format!("{n} requests") };
        browser.shows(rate, &json!(total));
    };
    let drawn = "return [[...window.touched], window.wasted]";
    counted(1);
    browser.shows("return window.beats >= 3", &json!(true));
    assert_eq!(browser.eval(drawn), json!([["mesh/svc.0500"], 0]));

    // The same while most of them are filtered away.
    browser.press("/");
    browser.press("svc.0500");
    browser.shows("return [...document.querySelectorAll('#rows tr')].filter((row) => !row.hidden).length", &json!(1));
    browser.eval("window.touched.clear()");
    counted(2);
    assert_eq!(browser.eval(drawn), json!([["mesh/svc.0500"], 0]));
    browser.complains_of_nothing();
}

/// Registers http services `svc.0000` and on, over one connection to the socket.
fn register_many(home: &Home, count: usize, backend: &str) {
    let mut socket = UnixStream::connect(home.file(".devmesh/run/devmesh.sock")).unwrap();
    let mut answers = BufReader::new(socket.try_clone().unwrap());
    let (host, port) = backend.rsplit_once(':').unwrap();
    for n in 0..count {
        let body = json!({
            "name": format!("svc.{n:04}"), "kind": "http", "source": "manual", "ttl_seconds": 3600,
            "backend": {"host": host, "port": port.parse::<u16>().unwrap()},
        })
        .to_string();
        let head = "POST /v1/registrations HTTP/1.1\r\nHost: devmesh\r\nContent-Type: application/json\r\n";
        write!(socket, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut lines = answers.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty());
        let status = lines.next().unwrap();
        assert!(status.starts_with("HTTP/1.1 20"), "{status}");
        let length = lines.filter_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let mut rest = vec![0; length.last().unwrap()];
        answers.read_exact(&mut rest).unwrap();
    }
}

fn port_of(url: &str) -> u16 {
    url.trim_end_matches('/').rsplit_once(':').unwrap().1.parse().unwrap()
}
