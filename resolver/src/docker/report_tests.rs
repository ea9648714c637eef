use super::*;
use crate::docker::refusal::Why;

fn refusal(container: &str, why: &str) -> Refusal {
    Refusal {
        container_id: container.into(),
        container: container.into(),
        service: "s".into(),
        label: String::new(),
        why: Why::Mesh(why.into()),
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

#[tokio::test]
async fn a_refusal_keeps_its_time_while_its_reason_holds() {
    let (start, mut report) = (Instant::now(), Report::new("e".into(), at(0), Duration::from_secs(60)));
    let since = |report: &Report| report.list().refused[0].since.clone();
    report.refused([refusal("a", "x")], at(1), start);
    let first = since(&report);
    report.refused([refusal("a", "x")], at(9), start);
    assert_eq!(since(&report), first);
    report.refused([refusal("a", "y")], at(10), start);
    assert_ne!(since(&report), first);
    report.refused([], at(11), start);
    assert!(report.list().refused.is_empty());
}

#[tokio::test]
async fn the_same_line_is_said_once_a_minute_and_then_forgotten() {
    let (start, mut report) = (Instant::now(), Report::new("e".into(), at(0), Duration::from_secs(60)));
    assert!(report.may_say("x".into(), start));
    assert!(!report.may_say("x".into(), start + Duration::from_secs(59)));
    assert!(report.may_say("x".into(), start + Duration::from_secs(60)));
    assert!(report.may_say("y".into(), start + Duration::from_secs(300)));
    assert_eq!(report.said.len(), 1, "what is past is not kept");
}

#[tokio::test]
async fn not_connected_since_is_when_it_was_lost_not_when_it_failed_last() {
    let (start, mut report) = (Instant::now(), Report::new("e".into(), at(0), Duration::from_secs(60)));
    let about = About { endpoint: "unix:///x".into(), version: "20".into(), api: "1.41".into() };
    report.up(&about, at(1), start);
    report.up(&about, at(2), start);
    let engine = report.list().docker.unwrap();
    assert_eq!((engine.status.as_str(), engine.since, engine.reached), ("connected", stamp(at(1)), true));
    report.down("unix:///x".into(), "gone".into(), at(5), start);
    report.down("unix:///x".into(), "gone".into(), at(50), start);
    let engine = report.list().docker.unwrap();
    assert_eq!(
        (engine.status.as_str(), engine.since, engine.error.as_deref()),
        ("degraded", stamp(at(5)), Some("gone"))
    );
}
