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

fn owner_key(container: &Container) -> String {
    crate::docker::labels::owner_key(&container.labels, &container.name, 80)
}

/// `holder`: the container that has every name, running or not.
fn planned_with(all: &[Container], holder: Option<&Container>, awaited: &[&str]) -> Outcome {
    let verdicts: Vec<Verdict> = all.iter().map(|container| judge(container, false)).collect();
    let judged = all.iter().zip(&verdicts).map(|(container, verdict)| Judged { container, verdict });
    let owner = holder.map(owner_key).unwrap_or_default();
    let holds = holder.map(|holder| Holder { container_id: &holder.id, owner_key: &owner });
    let plan = plan(judged, |_| holds, &awaited.iter().copied().collect());
    let wanted = plan.wanted.iter().map(|(name, wanted)| (name.to_string(), wanted.container_id.clone())).collect();
    let mut refused: Vec<_> = plan.refused.iter().map(|r| (r.container_id.clone(), r.reason())).collect();
    refused.sort();
    (wanted, refused)
}

/// As [`planned_with`]; `holder` is the id of one of `all`.
fn planned(all: &[Container], holder: Option<&str>) -> Outcome {
    planned_with(all, all.iter().find(|container| Some(container.id.as_str()) == holder), &[])
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

#[test]
fn an_owner_that_replaces_its_container_keeps_the_name_from_another_that_waits() {
    let (one, two) = (container("a1", "shop.web", "blue", 1), container("a2", "shop.web", "blue", 3));
    for started in [0, 2, 4] {
        let waits = container("b", "shop.web", "green", started);
        let mut all = vec![one.clone(), waits, two.clone()];
        let (wanted, refused) = planned(&all, Some("a1"));
        assert_eq!(wanted, [("shop.web".to_owned(), "a2".to_owned())], "the newest of the owner that has it");
        let told: Vec<&str> = refused.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(told, ["a1", "b"]);
        // Also when the former container is no longer there.
        all.remove(0);
        assert_eq!(planned_with(&all, Some(&one), &[]).0, [("shop.web".to_owned(), "a2".to_owned())]);
    }
}

#[test]
fn a_name_that_nobody_has_waits_until_all_who_ask_for_it_are_known() {
    let (a, b) = (container("a", "shop.web", "blue", 1), container("b", "shop.web", "green", 2));
    assert_eq!(planned_with(std::slice::from_ref(&b), None, &["shop.web"]), (vec![], vec![]));
    assert_eq!(planned_with(std::slice::from_ref(&b), None, &["shop.api"]).0.len(), 1, "another name does not");
    assert_eq!(planned_with(&[a.clone(), b.clone()], None, &[]).0[0].1, "a", "then the first started has it");
    assert_eq!(planned_with(&[a, b.clone()], Some(&b), &["shop.web"]).0[0].1, "b", "who has it does not wait");
}

proptest! {
    #[test]
    fn no_plan_takes_a_ready_name_from_an_owner_that_still_asks_for_it(
        starts in proptest::collection::vec((0i64..4, 0usize..2, 0usize..3), 1..8),
        holder in any::<prop::sample::Index>(),
        gone in any::<bool>(),
    ) {
        let mut all: Vec<Container> = starts.iter().enumerate().map(|(at, (start, name, service))| {
            container(&format!("{at}"), &format!("n{name}"), &format!("s{service}"), *start)
        }).collect();
        let at = holder.index(all.len());
        let held = all[at].clone();
        if gone {
            all.remove(at);
        }
        let name = &held.labels["io.devmesh.name"];
        let (wanted, _) = planned_with(&all, Some(&held), &[]);
        // Of one owner the newest decides which name that owner asks for.
        let newest = all.iter().filter(|c| owner_key(c) == owner_key(&held)).max_by_key(|c| age(c));
        if newest.is_some_and(|newest| &newest.labels["io.devmesh.name"] == name) {
            let has = wanted.iter().find(|(wanted, _)| wanted == name).map(|(_, id)| id.as_str());
            let owner = all.iter().find(|c| Some(c.id.as_str()) == has).map(owner_key);
            prop_assert_eq!(owner, Some(owner_key(&held)));
        }
    }

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
