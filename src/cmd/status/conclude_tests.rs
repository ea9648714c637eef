use super::super::text::text;
use super::*;
use stado_fleet::wire::{Certificate, LastError, Refused};

fn now() -> Timestamp {
    "2026-12-01T10:00:00Z".parse().unwrap()
}

fn row(name: &str, state: &str) -> Standing {
    Standing { name: name.into(), state: state.into(), from: "mesh".into(), kind: "tcp".into(), ..Standing::default() }
}

/// A daemon that answers, with these services.
fn seen(services: Vec<Standing>) -> Seen {
    let health =
        Health { status: "ok".into(), version: "1.2.3".into(), docker: "disabled".into(), leaving: Vec::new() };
    Seen {
        host: "ann@desk".into(),
        socket: "/s".into(),
        health: Ok(health),
        overview: Overview { pid: 7, services, ..Overview::default() },
        refused: RefusedList::default(),
        certificates: CertificateList::default(),
        fleet: Fleet::None,
    }
}

#[test]
fn a_host_where_all_is_well_is_ready_on_one_screen() {
    let mut web = row("web", "ready");
    (web.address, web.place) = ("127.0.0.1:15000".into(), "127.0.0.1:3000".into());
    let report = conclude(seen(vec![web]), now());
    assert_eq!((report.verdict, report.troubles.len()), ("ready", 0));
    let screen = text(&report, false);
    assert!(screen.starts_with("ann@desk: ready, nothing to put right\n"), "{screen}");
    assert!(screen.contains("\n  web  ready  127.0.0.1:15000  127.0.0.1:3000\n"), "{screen}");
    assert!(screen.contains("DAEMON    1.2.3, pid 7, /s") && screen.contains("the mesh alone"), "{screen}");
}

#[test]
fn a_daemon_that_does_not_answer_is_the_first_thing_that_is_said() {
    let mut all = seen(Vec::new());
    all.health = Err(Unanswered { why: "no daemon at /s".into(), mute: None });
    all.overview.pid = 0;
    all.certificates.refused = Some("bad key".into());
    let report = conclude(all, now());
    assert_eq!(report.verdict, "down");
    assert_eq!(report.troubles[0].about, "daemon");
    assert!(report.troubles[0].fix.as_deref().unwrap().contains("stado resolver serve"));
    let screen = text(&report, false);
    assert!(screen.contains("DAEMON    does not answer at /s"), "{screen}");
    assert!(screen.contains("SERVICES  not known"), "nobody said that there are none: {screen}");
}

#[test]
fn what_does_not_work_stands_before_what_does() {
    let mut failing = row("a-failing", "ready");
    failing.last_error =
        Some(LastError { at: "2026-12-01T09:58:00Z".into(), cause: "connection refused".into(), hop: None });
    let mut gone = row("gone", "unavailable");
    (gone.reason, gone.since) = ("its producer deregistered".into(), "2026-12-01T09:57:00Z".into());
    let report = conclude(seen(vec![row("a", "ready"), failing, gone, row("z", "unserved")]), now());
    let names: Vec<&str> = report.services.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["z", "gone", "a-failing", "a"]);
    // A producer that is not running now is nobody's fault.
    assert_eq!(report.verdict, "ready");
    let screen = text(&report, false);
    assert!(screen.lines().next().unwrap().ends_with("; of 4 services 1 unavailable, 1 failing"), "{screen}");
    assert!(screen.contains("SERVICES  1 unserved, 1 unavailable, 2 ready"), "{screen}");
    assert!(screen.contains("its producer deregistered (3m)"), "{screen}");
    assert!(screen.contains("last error 2m ago: connection refused"), "{screen}");
}

#[test]
fn containers_certificates_and_the_router_are_told_with_what_to_do() {
    let mut web = row("web", "ready");
    web.kind = "http".into();
    let mut all = seen(vec![web]);
    all.overview.router.reason = Some("the HTTP router is off; --http-enabled turns it on".into());
    all.refused.docker = Some(EngineReport {
        status: "degraded".into(),
        reached: true,
        since: "2026-12-01T09:00:00Z".into(),
        error: Some("no such socket".into()),
        ..EngineReport::default()
    });
    all.refused.refused.push(Refused {
        container: "db-1".into(),
        service: "db".into(),
        reason: "port 5432 is not published".into(),
        remedy: "Publish it on 127.0.0.1.".into(),
        ..Refused::default()
    });
    all.certificates.certificates.push(Certificate {
        source: "/c.pem".into(),
        problem: Some("expired".into()),
        ..Certificate::default()
    });
    let report = conclude(all, now());
    let told: Vec<(&str, &str)> = report.troubles.iter().map(|t| (t.severity, t.about.as_str())).collect();
    assert_eq!(
        told,
        [("fail", "containers"), ("warn", "router"), ("warn", "container db-1"), ("warn", "certificates")]
    );
    let screen = text(&report, false);
    assert!(screen.starts_with("ann@desk: degraded, 1 to put right, 3 worth knowing\n"), "{screen}");
    assert!(screen.contains("(since 1h)") && screen.contains("    do: Publish it on 127.0.0.1.\n"), "{screen}");
    assert!(screen.contains("router: web has no address: the HTTP router is off"), "{screen}");
}

#[test]
fn an_engine_that_never_was_there_is_no_trouble() {
    let mut all = seen(Vec::new());
    all.refused.docker = Some(EngineReport { status: "degraded".into(), ..EngineReport::default() });
    assert_eq!(conclude(all, now()).verdict, "ready");
}

#[test]
fn many_services_leave_room_for_the_rest_of_the_screen() {
    let services: Vec<Standing> = (0..500).map(|n| row(&format!("s{n:03}"), "ready")).collect();
    let report = conclude(seen(services), now());
    let screen = text(&report, false);
    assert!(screen.lines().count() < 40 && screen.contains("… and 480 more"), "{screen}");
    assert!(text(&report, true).contains("s499"));
}

#[test]
fn what_others_wrote_does_not_steer_the_terminal() {
    let mut evil = row("evil", "unavailable");
    evil.reason = "\u{1b}[2J".into();
    let mut all = seen(vec![evil]);
    all.fleet = Fleet::Unknown("\u{1b}]0;x\u{7}".into());
    let report = conclude(all, now());
    assert_eq!(report.verdict, "degraded");
    assert!(!text(&report, false).contains('\u{1b}'));
}
