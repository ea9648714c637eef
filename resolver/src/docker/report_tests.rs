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
    let mut report = Report::new("e".into(), at(0), Duration::from_secs(60));
    let about = About { endpoint: "unix:///x".into(), version: "20".into(), api: "1.41".into() };
    report.up(&about, at(1));
    report.up(&about, at(2));
    let engine = report.list().docker.unwrap();
    assert_eq!((engine.status.as_str(), engine.since, engine.reached), ("connected", stamp(at(1)), true));
    report.down("unix:///x".into(), "gone".into(), at(5));
    report.down("unix:///x".into(), "gone".into(), at(50));
    let engine = report.list().docker.unwrap();
    assert_eq!(
        (engine.status.as_str(), engine.since, engine.error.as_deref()),
        ("degraded", stamp(at(5)), Some("gone"))
    );
}

#[tokio::test]
async fn the_last_word_on_the_engine_holds_and_is_not_repeated_within_a_minute() {
    let (start, mut report) = (Instant::now(), Report::new("e".into(), at(0), Duration::from_secs(60)));
    let about = About { endpoint: "unix:///x".into(), version: "20".into(), api: "1.41".into() };
    let after = |seconds| start + Duration::from_secs(seconds);
    let mut told = |seconds, up: bool| {
        if up {
            report.up(&about, at(0));
        } else {
            report.down("unix:///x".into(), "gone".into(), at(0));
        }
        report.tell_engine(after(seconds));
        report.told.split(' ').next().unwrap().to_owned()
    };
    assert_eq!(told(0, true), "docker_connected");
    assert_eq!(told(5, false), "docker_degraded");
    assert_eq!(told(10, true), "docker_degraded", "not twice a minute");
    assert_eq!(told(60, true), "docker_connected", "but not for ever untrue");
    assert_eq!(told(61, false), "docker_connected");
    assert_eq!(told(62, true), "docker_connected", "a short trouble that was told before may be left out");
    assert_eq!(told(70, false), "docker_degraded");
}

#[tokio::test]
async fn a_label_without_a_meaning_is_named_once_in_the_life_of_its_container() {
    let mut report = Report::new("e".into(), at(0), Duration::from_secs(60));
    let (one, two) = (("1", "db", "io.devmesh.nmae"), ("2", "db", "io.devmesh.nmae"));
    assert_eq!(report.unknown_labels([one].into_iter()), 1);
    for _ in 0..100 {
        assert_eq!(report.unknown_labels([one].into_iter()), 0);
    }
    assert_eq!(report.unknown_labels([two].into_iter()), 1, "another container of that name");
    assert_eq!(report.unknown.len(), 1, "what is past is not kept");
}
