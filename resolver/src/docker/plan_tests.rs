use super::*;
use crate::docker::claims::judge;
use crate::docker::container::{Binding, Phase};
use proptest::prelude::*;

fn container(id: &str, name: &str, service: &str, started: i64) -> Container {
    let labels = [
        ("io.devmesh.enable", "true"),
        ("io.devmesh.name", name),
        ("io.devmesh.container-port", "80"),
        ("com.docker.compose.project", "shop"),
        ("com.docker.compose.service", service),
    ];
    Container {
        id: id.into(),
        name: format!("c-{id}"),
        started_at: jiff::Timestamp::from_second(started).ok(),
        phase: Phase::Running,
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ports: [("80/tcp".to_owned(), vec![Binding { ip: "127.0.0.1".into(), port: "9".into() }])].into(),
        ..Container::default()
    }
}

/// (name → container, reasons by container).
type Outcome = (Vec<(String, String)>, Vec<(String, String)>);

fn planned(all: &[Container], holder: Option<&str>) -> Outcome {
    let verdicts: Vec<Verdict> = all.iter().map(|container| judge(container, false)).collect();
    let judged = all.iter().zip(&verdicts).map(|(container, verdict)| Judged { container, verdict });
    let plan = plan(judged, |_| holder);
    let wanted = plan.wanted.iter().map(|(name, wanted)| (name.to_string(), wanted.container_id.clone())).collect();
    let mut refused: Vec<_> = plan.refused.iter().map(|r| (r.container_id.clone(), r.reason())).collect();
    refused.sort();
    (wanted, refused)
}

#[test]
fn the_container_that_started_last_has_the_name_and_the_other_is_superseded() {
    let (old, new) = (container("a", "shop.web", "web", 1), container("b", "shop.web", "web", 2));
    for order in [[old.clone(), new.clone()], [new.clone(), old.clone()]] {
        for holder in [None, Some("a"), Some("b")] {
            let (wanted, refused) = planned(&order, holder);
            assert_eq!(wanted, [("shop.web".to_owned(), "b".to_owned())]);
            let reason = "container /c-a is superseded by /c-b (b), which has the same owner and started later";
            assert_eq!(refused, [("a".to_owned(), reason.to_owned())]);
        }
    }
    assert_eq!(planned(&[old], None).0, [("shop.web".to_owned(), "a".to_owned())], "alone it serves");
}

#[test]
fn a_newer_container_that_is_not_published_yet_takes_nothing() {
    let old = container("a", "shop.web", "web", 1);
    let new = Container { ports: Default::default(), ..container("b", "shop.web", "web", 2) };
    assert_eq!(planned(&[old, new], None).0, [("shop.web".to_owned(), "a".to_owned())]);
}

#[test]
fn of_two_owners_of_one_name_the_holder_keeps_it() {
    let (a, b) = (container("a", "shop.web", "blue", 1), container("b", "shop.web", "green", 2));
    let has = |holder| planned(&[a.clone(), b.clone()], holder).0[0].1.clone();
    assert_eq!(has(Some("b")), "b");
    assert_eq!(has(Some("a")), "a");
    assert_eq!(has(None), "a", "else the one that started first");
    let (_, refused) = planned(&[a.clone(), b.clone()], Some("b"));
    assert_eq!(refused[0].0, "a");
    assert_eq!(refused[0].1, "service shop.web is already owned by docker:shop:green:80 (container c-b)");
}

proptest! {
    #[test]
    fn the_order_of_the_list_decides_nothing(
        starts in proptest::collection::vec((0i64..4, 0usize..3, 0usize..3), 0..8),
        seed in any::<u64>(),
    ) {
        let all: Vec<Container> = starts.iter().enumerate().map(|(at, (start, name, service))| {
            container(&format!("{at}"), &format!("n{name}"), &format!("s{service}"), *start)
        }).collect();
        let mut shuffled = all.clone();
        for at in (1..shuffled.len()).rev() {
            shuffled.swap(at, (seed >> (at % 60)) as usize % (at + 1));
        }
        prop_assert_eq!(planned(&all, None), planned(&shuffled, None));
    }

    #[test]
    fn every_container_serves_or_is_told_why_not(
        starts in proptest::collection::vec((0i64..4, 0usize..3, 0usize..3), 0..8),
    ) {
        let all: Vec<Container> = starts.iter().enumerate().map(|(at, (start, name, service))| {
            container(&format!("{at}"), &format!("n{name}"), &format!("s{service}"), *start)
        }).collect();
        let (wanted, refused) = planned(&all, None);
        prop_assert_eq!(wanted.len() + refused.len(), all.len());
    }
}
