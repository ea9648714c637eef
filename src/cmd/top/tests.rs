use super::draw::{Scene, draw};
use super::feed::News;
use super::model::Model;
use super::view::{Effect, Panel, View};
use crate::cmd::resolver::{self, Waiting};
use crate::cmd::status::{Fleet, Seen, Unanswered};
use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use stado_fleet::ledger::{LinkState, RouteFailure, Wait};
use stado_fleet::wire::{Connection, ConnectionList, Health, LastError, Overview, Standing, Traffic};
use std::time::Duration;

fn now() -> Timestamp {
    "2026-12-01T10:00:00Z".parse().unwrap()
}

fn row(name: &str, address: &str) -> Standing {
    Standing {
        id: format!("mesh/{name}"),
        name: name.into(),
        from: "mesh".into(),
        kind: "tcp".into(),
        state: "ready".into(),
        address: address.into(),
        place: "127.0.0.1:3000".into(),
        ..Standing::default()
    }
}

/// An adapter of the fleet, with what the resolver knows of its way.
fn adapter(service: &str, consumer: &str, address: &str) -> (Standing, resolver::Route) {
    let standing = Standing {
        id: format!("fleet/{service}/{consumer}"),
        consumer: consumer.into(),
        from: "fleet".into(),
        host: "hub".into(),
        place: "hub (127.0.0.1:5432)".into(),
        ..row(service, address)
    };
    let route = resolver::Route {
        service: service.into(),
        consumer: consumer.into(),
        carrier: Some("multiplex".into()),
        path: Some("primary".into()),
        rtt_us: Some(340),
        ..resolver::Route::default()
    };
    (standing, route)
}

fn seen(services: Vec<Standing>) -> Seen {
    let health =
        Health { status: "ok".into(), version: "1.2.3".into(), docker: "disabled".into(), leaving: Vec::new() };
    Seen {
        host: "ann@desk".into(),
        socket: "/s".into(),
        health: Ok(health),
        overview: Overview { at_ms: 1000, pid: 7, services, ..Overview::default() },
        refused: Default::default(),
        certificates: Default::default(),
        fleet: Fleet::None,
    }
}

/// The fleet's side, with these routes.
fn fleet(routes: Vec<resolver::Route>) -> resolver::Report {
    let (target, state) = (Some("desk".to_owned()), "serving".to_owned());
    resolver::Report { target, state, verdict: "ready", routes, ..resolver::Report::default() }
}

fn heard(news: Vec<News>) -> Model {
    let mut model = Model::default();
    news.into_iter().for_each(|news| model.hear(news, now()));
    model
}

fn told(services: Vec<Standing>) -> Model {
    heard(vec![News::Fleet(Fleet::None), News::Daemon(Box::new(seen(services)))])
}

/// A few services: one that works, one without a producer, an adapter that waits.
fn busy() -> Model {
    let mut web = row("web", "http://web.localhost:8088");
    web.kind = "http".into();
    let mut gone = row("checkout.db", "127.0.0.1:15000");
    (gone.state, gone.place, gone.reason) = ("unavailable".into(), String::new(), "its producer deregistered".into());
    gone.since = "2026-12-01T09:57:00Z".into();
    let (orders, mut way) = adapter("orders", "shop", "127.0.0.1:15500");
    way.last_failure = Some(RouteFailure {
        at: "2026-12-01T09:50:00.000000+00:00".into(),
        hop: "session".into(),
        cause: "no path to hub".into(),
        blame: "remote".into(),
    });
    let mut report = fleet(vec![way]);
    let wait = Wait {
        service: "orders".into(),
        consumer: "shop".into(),
        endpoint: "127.0.0.1:5432".into(),
        active_host: "hub".into(),
        since: "2026-12-01T09:59:48.000000+00:00".into(),
        phase: "answer".into(),
        client: Some("127.0.0.1:50412".into()),
        ..Wait::default()
    };
    report.waiting_opens = vec![Waiting { wait, waited_seconds: 12 }];
    report.links = vec![LinkState {
        host: "hub".into(),
        carrier: "multiplex".into(),
        path: "primary".into(),
        rtt_us: Some(340),
        streams: 2,
        ..LinkState::default()
    }];
    let before = seen(vec![web.clone(), gone.clone(), orders.clone()]);
    web.traffic = Traffic { requests: 50, bytes_down: 40_960, active: 3, ..Traffic::default() };
    let mut after = seen(vec![web, gone, orders]);
    after.overview.at_ms = 3000;
    heard(vec![
        News::Fleet(Fleet::Told(Box::new(report))),
        News::Daemon(Box::new(before)),
        News::Daemon(Box::new(after)),
    ])
}

/// What is on the screen, as cells.
fn cells(view: &mut View, model: &Model, size: (u16, u16), colour: bool) -> Buffer {
    let scene = Scene {
        picture: model.picture(),
        connections: model.connections(),
        now: now(),
        silent: Duration::ZERO,
        colour,
    };
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| draw(view, &scene, frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

fn lines_of(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect::<String>();
    buffer.content.chunks(width).map(|cells| line(cells).trim_end().to_owned()).collect()
}

/// What is on the screen, as lines.
fn screen(view: &mut View, model: &Model, width: u16, height: u16) -> Vec<String> {
    lines_of(&cells(view, model, (width, height), false))
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

/// Types letters; the effect of the last one.
fn types(view: &mut View, model: &Model, letters: &str) -> Effect {
    letters.chars().map(|c| view.press(key(KeyCode::Char(c)), model.picture())).last().unwrap()
}

fn presses(view: &mut View, model: &Model, code: KeyCode) -> Effect {
    view.press(key(code), model.picture())
}

#[test]
fn eighty_columns_show_states_addresses_rates_waits_and_sessions() {
    let shown = screen(&mut View::default(), &busy(), 80, 24);
    assert!(shown[0].starts_with("stado top  ann@desk: "), "{shown:#?}");
    assert!(shown[1].starts_with("[Routes 3]  Waits 1   Sessions 1   Troubles 0 "), "{shown:#?}");
    assert!(shown[1].ends_with("by state"), "{shown:#?}");
    let at =
        |text: &str| shown.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {shown:#?}"));
    let heads: Vec<&str> = shown[at("SERVICE")].split_whitespace().collect();
    assert_eq!(heads, ["SERVICE", "STATE", "ADDRESS", "OPEN", "NEW/S", "UP/S", "DOWN/S", "WAIT"]);
    let cells = |text: &str| shown[at(text)].split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(cells("web.localhost"), ["web", "ready", "web.localhost:8088", "3", "25", "0", "20K"]);
    assert_eq!(cells("> checkout.db"), [">", "checkout.db", "unavailable", "127.0.0.1:15000", "0", "0", "0", "0"]);
    assert!(shown[at("127.0.0.1:15500")].ends_with("12s"), "{shown:#?}");
    assert!(
        at("checkout.db") < at("127.0.0.1:15500") && at("127.0.0.1:15500") < at("web.localhost"),
        "the worst first"
    );
    assert_eq!(
        shown[at("WAITS") + 1],
        "  orders for shop  12s for an answer from 127.0.0.1:5432 on hub, client 127.0.0…"
    );
    assert_eq!(shown[at("SESSIONS") + 1], "  hub  multiplex over primary  0.3ms  2 streams");
    assert_eq!(shown[22], "checkout.db: its producer deregistered", "why the chosen one does not work");
    assert!(shown[23].starts_with("q quit  ? help  / filter"), "{shown:#?}");
}

#[test]
fn a_wide_terminal_shows_what_stands_behind_each_address_too() {
    let shown = screen(&mut View::default(), &busy(), 120, 40);
    let line = |text: &str| shown.iter().find(|line| line.contains(text)).unwrap();
    assert!(line("SERVICE").ends_with("WAIT    TRIP BEHIND IT"), "{shown:#?}");
    assert!(line("checkout.db").ends_with("its producer deregistered"), "{shown:#?}");
    assert!(line("web.localhost").ends_with(" 127.0.0.1:3000"), "{shown:#?}");
    assert!(line("127.0.0.1:15500").contains("0.3ms"), "{shown:#?}");
}

#[test]
fn every_size_is_drawn_and_little_room_keeps_what_says_most() {
    let model = busy();
    let shown = screen(&mut View::default(), &model, 40, 10);
    assert!(
        shown.iter().any(|line| line.starts_with("> checkout.db ") && line.ends_with(" unavailable")),
        "{shown:#?}"
    );
    assert!(shown[9].starts_with("q quit  ? help"), "{shown:#?}");
    for height in 1..12 {
        for width in [1, 2, 3, 7, 20, 39, 81, 300] {
            for open in [KeyCode::Null, KeyCode::Enter, KeyCode::Char('?'), KeyCode::Char('/'), KeyCode::Char('4')] {
                let mut view = View::default();
                presses(&mut view, &model, open);
                screen(&mut view, &model, width, height);
            }
        }
    }
}

#[test]
fn without_colour_nothing_is_coloured_and_what_is_chosen_still_shows() {
    let model = busy();
    for (colour, open) in [(false, KeyCode::Null), (false, KeyCode::Enter), (true, KeyCode::Null)] {
        let mut view = View::default();
        presses(&mut view, &model, open);
        let buffer = cells(&mut view, &model, (80, 24), colour);
        let coloured = buffer.content.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        assert_eq!(coloured, colour, "{open:?}");
    }
    let buffer = cells(&mut View::default(), &model, (80, 24), false);
    let lines = lines_of(&buffer);
    let chosen = lines.iter().position(|line| line.starts_with("> checkout.db")).unwrap();
    let reversed = |line: usize| buffer.content[line * 80].modifier.contains(Modifier::REVERSED);
    assert!(reversed(chosen) && !reversed(chosen + 1));
}

#[test]
fn a_filter_keeps_what_has_all_its_words_and_is_dropped_by_escape() {
    let (mut view, model) = (View::default(), busy());
    types(&mut view, &model, "/shop 155");
    let shown = screen(&mut view, &model, 80, 24);
    assert!(shown[23].starts_with("filter: shop 155_"), "{shown:#?}");
    presses(&mut view, &model, KeyCode::Enter);
    let shown = screen(&mut view, &model, 80, 24);
    assert!(shown[1].starts_with("[Routes 1]") && shown[1].contains("/shop 155"), "{shown:#?}");
    assert!(shown.iter().any(|line| line.starts_with("> orders for shop")), "{shown:#?}");
    assert_eq!(types(&mut view, &model, "q"), Effect::Quit, "letters are keys again");
    types(&mut view, &model, "/x");
    presses(&mut view, &model, KeyCode::Backspace);
    presses(&mut view, &model, KeyCode::Esc);
    assert!(screen(&mut view, &model, 80, 24)[1].starts_with("[Routes 3]"));
    types(&mut view, &model, "/nothing like it");
    let shown = screen(&mut view, &model, 80, 24);
    assert!(shown.iter().any(|line| line.contains("Esc drops the filter")), "{shown:#?}");
}

/// The words on the screen, wherever lines end.
fn words(shown: &[String]) -> String {
    shown.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// The services, as they are listed.
fn order(view: &mut View, model: &Model) -> Vec<String> {
    let items = view.items(Panel::Routes, model.picture());
    items.iter().map(|item| item.key().rsplit('/').next().unwrap().to_owned()).collect()
}

#[test]
fn each_column_sorts_with_the_most_first_and_can_be_reversed() {
    let (mut view, model) = (View::default(), busy());
    assert_eq!(order(&mut view, &model), ["checkout.db", "shop", "web"], "the worst first");
    let next = |view: &mut View| {
        types(view, &model, "s");
        (view.sort.name(), order(view, &model).remove(0))
    };
    let seen: Vec<(&str, String)> = (0..9).map(|_| next(&mut view)).collect();
    let first = [
        ("service", "checkout.db"),
        ("address", "checkout.db"),
        ("open", "web"),
        ("new a second", "web"),
        ("bytes up", "checkout.db"),
        ("bytes down", "web"),
        ("longest wait", "shop"),
        ("round trip", "shop"),
        ("state", "checkout.db"),
    ];
    assert_eq!(seen, first.map(|(column, first)| (column, first.to_owned())));
    types(&mut view, &model, "r");
    assert_eq!(order(&mut view, &model), ["web", "shop", "checkout.db"]);
    assert!(screen(&mut view, &model, 100, 24)[1].ends_with("by state, reversed"));
}

#[test]
fn the_cursor_stays_with_its_service_when_the_order_changes() {
    let (mut view, model) = (View::default(), busy());
    types(&mut view, &model, "jj");
    let chosen = |view: &View| view.route(model.picture()).unwrap().title.clone();
    assert_eq!(chosen(&view), "web");
    types(&mut view, &model, "r");
    assert_eq!(chosen(&view), "web");
    types(&mut view, &model, "kkkk");
    assert_eq!(chosen(&view), "web", "the first one now");
    types(&mut view, &model, "G");
    assert_eq!(chosen(&view), "checkout.db");
    types(&mut view, &model, "g");
    assert_eq!(chosen(&view), "web");
}

#[test]
fn an_address_is_copied_and_an_http_one_opened() {
    let (mut view, model) = (View::default(), busy());
    assert_eq!(types(&mut view, &model, "c"), Effect::Copy("127.0.0.1:15000".into()));
    assert_eq!(types(&mut view, &model, "o"), Effect::Nothing);
    assert_eq!(screen(&mut view, &model, 80, 24)[23], "127.0.0.1:15000 is no web address; c copies it");
    assert_eq!(types(&mut view, &model, "Go"), Effect::Open("http://web.localhost:8088".into()));
    // A wait is about its route.
    types(&mut view, &model, "2");
    assert_eq!(types(&mut view, &model, "c"), Effect::Copy("127.0.0.1:15500".into()));
    types(&mut view, &model, "3c");
    assert_eq!(screen(&mut view, &model, 80, 24)[23], "nothing with an address is chosen");

    let mut homeless = row("web", "");
    homeless.kind = "http".into();
    let (mut view, model) = (View::default(), told(vec![homeless]));
    assert_eq!(types(&mut view, &model, "c"), Effect::Nothing);
    assert_eq!(screen(&mut view, &model, 80, 24)[23], "web has no address now");
}

#[test]
fn a_story_names_the_hop_the_reason_who_acts_and_who_waits_since_when() {
    let (mut view, mut model) = (View::default(), busy());
    types(&mut view, &model, "j");
    presses(&mut view, &model, KeyCode::Enter);
    assert_eq!(view.followed(model.picture()), Some("orders"));
    let open = |consumer: &str, client: &str| Connection {
        client: client.into(),
        consumer: Some(consumer.into()),
        since: "2026-12-01T09:59:48Z".into(),
        duration_ms: 12_000,
        outcome: "open".into(),
        ..Connection::default()
    };
    let open = vec![open("shop", "127.0.0.1:50412"), open("other", "127.0.0.1:50413")];
    let list = ConnectionList { service: "orders".into(), open, ..ConnectionList::default() };
    model.hear(News::Connections(Box::new(list)), now());
    let shown = screen(&mut view, &model, 80, 34).join("\n");
    for part in [
        "orders for shop\n",
        "way         multiplex over the path primary, 0.3ms there and back\n",
        "failed      2026-12-01T09:50:00Z (10m ago): the session failed: no path to hub\n",
        "where       session: on the SSH way to the other host\n",
        "who acts    the other host\n",
        "waits       since 2026-12-01T09:59:48Z (12s ago) for an answer from\n            127.0.0.1:5432 on hub",
        "connected   127.0.0.1:50412 since 2026-12-01T09:59:48Z (12s), open\n",
    ] {
        assert!(shown.contains(part), "{part}\n---\n{shown}");
    }
    assert!(!shown.contains("50413"), "another consumer's: {shown}");
    assert_eq!(types(&mut view, &model, "c"), Effect::Copy("127.0.0.1:15500".into()));
    types(&mut view, &model, "q");
    assert!(screen(&mut view, &model, 80, 24)[1].starts_with("[Routes 3]"), "q is back to the list");
}

#[test]
fn help_explains_every_key_and_scrolls_where_it_is_longer_than_the_screen() {
    let (mut view, model) = (View::default(), busy());
    types(&mut view, &model, "?");
    let shown = screen(&mut view, &model, 100, 40).join("\n");
    for key in ["Enter ", "/ ", "s ", "r ", "c ", "o ", "Tab ", "q ", "NEW/S", "unserved"] {
        assert!(shown.lines().any(|line| line.starts_with(key)), "{key}: {shown}");
    }
    let first = screen(&mut view, &model, 60, 10);
    assert!(first[1].ends_with("more lines"), "{first:#?}");
    types(&mut view, &model, "G");
    let last = words(&screen(&mut view, &model, 60, 10));
    assert!(last.contains("the reason says what to do"), "{last}");
    assert_eq!(types(&mut view, &model, "?"), Effect::Nothing);
    assert!(view.page.is_none());
    let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(view.press(control, model.picture()), Effect::Quit);
}

#[test]
fn a_daemon_that_is_not_there_is_told_and_comes_back_by_itself() {
    let mut view = View::default();
    let shown = screen(&mut view, &Model::default(), 80, 24);
    assert!(shown[0].contains("asking the daemon"), "{shown:#?}");
    let mut none = seen(Vec::new());
    none.health = Err(Unanswered { why: "no daemon at /s".into(), mute: None });
    let mut model = heard(vec![News::Daemon(Box::new(none.clone()))]);
    let shown = screen(&mut view, &model, 80, 24);
    assert!(shown[0].contains("ann@desk: down"), "{shown:#?}");
    let said = words(&shown);
    assert!(said.contains("no daemon at /s. Start it with `stado resolver serve`"), "{shown:#?}");
    assert!(said.contains("This view goes on asking."), "{shown:#?}");

    model.hear(News::Daemon(Box::new(seen(vec![row("web", "127.0.0.1:15000")]))), now());
    assert!(
        screen(&mut view, &model, 80, 24).iter().any(|line| line.starts_with("> web ") && line.contains(" ready "))
    );

    // It dies again: what it served is still what somebody looks for.
    model.hear(News::Daemon(Box::new(none)), now());
    let shown = screen(&mut view, &model, 80, 24);
    assert!(words(&shown).contains("Below is what was known last."), "{shown:#?}");
    assert!(shown.iter().any(|line| line.starts_with("> web ") && line.contains(" unknown ")), "{shown:#?}");
    model.hear(News::Daemon(Box::new(seen(vec![row("web", "127.0.0.1:15000")]))), now());
    assert!(
        screen(&mut view, &model, 80, 24).iter().any(|line| line.starts_with("> web ") && line.contains(" ready "))
    );
}

#[test]
fn a_daemon_that_hangs_is_told_before_it_is_given_up() {
    let model = busy();
    let scene = |silent| Scene { picture: model.picture(), connections: None, now: now(), silent, colour: false };
    let first = |silent| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let scene = scene(Duration::from_secs(silent));
        terminal.draw(|frame| draw(&mut View::default(), &scene, frame.buffer_mut())).unwrap();
        lines_of(terminal.backend().buffer()).remove(0)
    };
    assert!(first(3).ends_with("  no answer for 3s"), "{}", first(3));
    assert!(!first(1).contains("no answer"), "{}", first(1));
}

#[test]
fn a_failure_is_over_when_something_works_again() {
    let mut db = row("db", "127.0.0.1:15000");
    let error = LastError {
        at: "2026-12-01T09:59:00Z".into(),
        cause: "connection refused".into(),
        hop: Some("service".into()),
    };
    db.last_error = Some(error);
    let mut model = told(vec![db.clone()]);
    let shown = screen(&mut View::default(), &model, 80, 24);
    assert!(shown.iter().any(|line| line.starts_with("> db ") && line.contains(" failing ")), "{shown:#?}");
    assert!(shown.contains(&"db: the service failed: connection refused".to_owned()), "{shown:#?}");
    db.traffic.opened = 1;
    let mut later = seen(vec![db]);
    later.overview.at_ms = now().as_millisecond();
    model.hear(News::Daemon(Box::new(later)), now());
    let shown = screen(&mut View::default(), &model, 80, 24);
    assert!(shown.iter().any(|line| line.starts_with("> db ") && line.contains(" ready ")), "{shown:#?}");
}

#[test]
fn what_other_hosts_wrote_cannot_steer_the_terminal() {
    let mut evil = row("web", "127.0.0.1:15000");
    (evil.state, evil.reason) = ("unavailable".into(), "\u{1b}[2J\u{202e}moc".into());
    let model = told(vec![evil]);
    let mut view = View::default();
    for open in [KeyCode::Null, KeyCode::Enter] {
        presses(&mut view, &model, open);
        let shown = screen(&mut view, &model, 120, 24).join("\n");
        assert!(shown.contains("\\u{1b}[2J\\u{202e}moc"), "{shown}");
    }
}

#[test]
fn a_thousand_routes_are_walked_to_the_end_without_a_pause() {
    let service = |n: usize| row(&format!("service-{n:04}"), &format!("127.0.0.1:{}", 15_000 + n));
    let model = told((0..1000).map(service).collect());
    let mut view = View::default();
    let began = std::time::Instant::now();
    for _ in 0..50 {
        presses(&mut view, &model, KeyCode::PageDown);
        screen(&mut view, &model, 120, 40);
    }
    types(&mut view, &model, "G");
    let shown = screen(&mut view, &model, 120, 40);
    assert!(shown.iter().any(|line| line.starts_with("> service-0999 ")), "{shown:#?}");
    assert!(shown[1].starts_with("[Routes 1000]"), "{shown:#?}");
    // An unoptimised build on a busy machine; a pause that a person sees would be many times as long.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    types(&mut view, &model, "kg");
    assert!(screen(&mut view, &model, 80, 24).iter().any(|line| line.starts_with("> service-0000 ")));
}
