//! Containers start, change, pause, are replaced and end.
use super::fake::Run;
use super::{Config, Docker, Rig, within};
use crate::docker::container::{Health, Phase};
use crate::docker::engine::{Event, What};
use crate::mesh::rig::{register, request};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const DB: Run<'_> = Run { id: "one", service: "db", name: "checkout.postgres", port: 4001 };

#[tokio::test(start_paused = true)]
async fn a_container_from_before_the_daemon_is_registered_with_its_owner() {
    let mut rig = Rig::new();
    rig.fake.run(DB);
    rig.watch();
    within(5, "registered", || rig.backend("checkout.postgres") == Some(4001)).await;
    let found = rig.inspect("checkout.postgres").unwrap();
    assert_eq!((found.source.as_str(), found.owner_key.as_str()), ("docker", "docker:it:db:5432"));
    assert_eq!((found.producer_id.as_str(), found.docker_container_id.as_str()), ("one", "one"));
    assert_eq!(rig.engine(), "connected");
}

#[tokio::test(start_paused = true)]
async fn a_recreated_container_keeps_the_frontend_and_a_late_goodbye_hurts_nothing() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(DB);
    within(5, "the first", || rig.backend("checkout.postgres") == Some(4001)).await;
    let frontend = rig.frontend("checkout.postgres");
    rig.fake.remove("one");
    within(5, "unavailable", || rig.reason("checkout.postgres") == "its container c-one died").await;
    rig.fake.run(Run { id: "two", port: 4002, ..DB });
    within(5, "the second", || rig.backend("checkout.postgres") == Some(4002)).await;
    for how in ["died", "stopped", "was removed"] {
        rig.fake.send(Event {
            container: "one".into(),
            what: What::Ended(how),
            at: None,
            attributes: Default::default(),
        });
    }
    let before = rig.fake.inspections.load(Ordering::Relaxed);
    rig.fake.change("two", |_| {});
    within(5, "all of it was heard", || rig.fake.inspections.load(Ordering::Relaxed) > before).await;
    assert_eq!((rig.backend("checkout.postgres"), rig.frontend("checkout.postgres")), (Some(4002), frontend));
}

#[tokio::test(start_paused = true)]
async fn the_newest_of_one_owner_serves_without_a_flip_until_it_ends() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(DB);
    within(5, "the first", || rig.backend("checkout.postgres") == Some(4001)).await;
    rig.fake.run(Run { id: "aaa", port: 4002, ..DB });
    within(5, "the newest", || rig.backend("checkout.postgres") == Some(4002)).await;
    within(5, "the other is listed", || rig.refused().len() == 1).await;
    let row = rig.refused().remove(0);
    assert_eq!((row.container.as_str(), row.service.as_str()), ("c-one", "checkout.postgres"));
    assert!(row.reason.contains("is superseded by /c-aaa"), "{}", row.reason);
    let mut changes = rig.mesh.events();
    changes.next().await.unwrap();
    let quiet = tokio::time::timeout(std::time::Duration::from_secs(300), changes.next()).await;
    assert!(quiet.is_err(), "five minutes of lists change nothing: {quiet:?}");
    rig.fake.remove("aaa");
    within(5, "the older one takes over", || rig.backend("checkout.postgres") == Some(4001)).await;
    within(5, "nobody is superseded", || rig.refused().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn four_wrong_containers_show_four_reasons_and_the_good_one_serves() {
    let mut rig = Rig::new();
    rig.fake.run(DB);
    rig.fake.run(Run { id: "exposed", service: "a", name: "it.exposed", port: 1 });
    rig.fake.change("exposed", |c| c.ports.get_mut("5432/tcp").unwrap()[0].ip = "0.0.0.0".into());
    rig.fake.run(Run { id: "unpublished", service: "b", name: "it.unpublished", port: 0 });
    rig.fake.run(Run { id: "misnamed", service: "c", name: "Not_A_Name", port: 2 });
    rig.fake.run(Run { id: "badport", service: "d", name: "it.badport", port: 3 });
    rig.fake.label("badport", "io.devmesh.container-port", "http");
    rig.watch();
    within(30, "four reasons", || rig.refused().len() == 4).await;
    let reasons: Vec<String> = rig.refused().iter().map(|row| row.reason.clone()).collect();
    for part in ["not loopback-only", "is not published to the host", r#""Not_A_Name" must match"#, r#"port="http""#] {
        assert!(reasons.iter().any(|reason| reason.contains(part)), "{part} in {reasons:?}");
    }
    assert!(rig.refused().iter().all(|row| !row.remedy.is_empty() && !row.since.is_empty()));
    assert_eq!(rig.backend("checkout.postgres"), Some(4001));
    assert_eq!(rig.mesh.list().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_published_late_is_found_and_never_shown_as_refused() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.mute();
    rig.fake.run(Run { port: 0, ..DB });
    within(6, "it was looked at", || rig.fake.inspections.load(Ordering::Relaxed) >= 3).await;
    assert!(rig.refused().is_empty(), "{:?}", rig.refused());
    rig.fake.publish("one", 4001);
    within(6, "found", || rig.backend("checkout.postgres") == Some(4001)).await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_container_keeps_its_name_and_comes_back() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(DB);
    within(5, "ready", || rig.backend("checkout.postgres").is_some()).await;
    let frontend = rig.frontend("checkout.postgres");
    rig.fake.change("one", |container| container.phase = Phase::Paused);
    within(5, "held", || rig.reason("checkout.postgres") == "its container c-one is paused").await;
    rig.fake.change("one", |container| container.phase = Phase::Running);
    within(5, "back", || rig.backend("checkout.postgres") == Some(4001)).await;
    assert_eq!(rig.frontend("checkout.postgres"), frontend);
}

#[tokio::test(start_paused = true)]
async fn health_is_shown_and_followed_only_when_asked() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(DB);
    rig.fake.health("one", Health::Starting);
    within(5, "served while it starts", || rig.backend("checkout.postgres").is_some()).await;
    let note = |rig: &Rig| rig.inspect("checkout.postgres").and_then(|found| found.note).unwrap_or_default();
    within(5, "shown", || note(&rig) == "container c-one is starting").await;
    rig.fake.run(Run { id: "two", service: "api", name: "it.api", port: 4002 });
    rig.fake.label("two", "io.devmesh.follow-health", "true");
    rig.fake.health("two", Health::Starting);
    within(5, "held while it starts", || rig.reason("it.api").contains("c-two is starting")).await;
    assert_ne!(rig.frontend("it.api"), 0, "it has its address already");
    rig.fake.health("two", Health::Healthy);
    within(1, "within a second of healthy", || rig.backend("it.api") == Some(4002)).await;
    rig.fake.health("two", Health::Unhealthy { streak: 3, output: "refused".into() });
    within(5, "held again", || rig.reason("it.api").ends_with("3 checks in a row failed: refused")).await;
}

#[tokio::test(start_paused = true)]
async fn a_renamed_container_keeps_its_service_under_its_new_owner_key() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(Run { service: "", ..DB });
    let owner = |rig: &Rig| rig.inspect("checkout.postgres").map(|found| found.owner_key).unwrap_or_default();
    within(5, "by its name", || owner(&rig) == "docker:c-one:5432").await;
    rig.fake.change("one", |container| container.name = "other".into());
    within(5, "by its new name", || owner(&rig) == "docker:other:5432").await;
    assert_eq!(rig.backend("checkout.postgres"), Some(4001));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_a_process_holds_is_refused_and_taken_when_it_is_free() {
    let mut rig = Rig::new();
    let process = register(&rig.mesh, "checkout.postgres").await;
    rig.fake.run(DB);
    rig.watch();
    within(5, "refused", || rig.refused().iter().any(|row| row.reason.contains("already owned"))).await;
    rig.mesh.deregister(&process.registration_id, Some(&process.lease_token)).unwrap();
    within(6, "taken", || rig.backend("checkout.postgres") == Some(4001)).await;
    within(6, "no refusal is left", || rig.refused().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_service_comes_back_while_its_container_runs() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(DB);
    within(5, "ready", || rig.backend("checkout.postgres").is_some()).await;
    rig.mesh.forget("checkout.postgres", true).await.unwrap();
    within(6, "back with the next list", || rig.backend("checkout.postgres") == Some(4001)).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_a_person_renamed_ends_with_its_container() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(DB);
    within(5, "ready", || rig.backend("checkout.postgres").is_some()).await;
    rig.mesh.rename("checkout.postgres", "checkout.old").await.unwrap();
    within(6, "the label's name is back", || rig.backend("checkout.postgres").is_some()).await;
    rig.fake.remove("one");
    within(5, "both ended", || rig.mesh.list().iter().all(|service| service.status == "unavailable")).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_may_take_a_name_whose_container_ended_and_the_container_then_waits() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(DB);
    within(5, "ready", || rig.backend("checkout.postgres").is_some()).await;
    rig.fake.remove("one");
    within(5, "ended", || rig.backend("checkout.postgres").is_none()).await;
    rig.mesh.register(request("checkout.postgres", 9), None).await.unwrap();
    rig.fake.run(Run { id: "two", ..DB });
    within(5, "refused", || rig.refused().len() == 1).await;
    assert_eq!(rig.backend("checkout.postgres"), Some(9));
}

#[tokio::test(start_paused = true)]
async fn a_restarted_daemon_gives_a_name_to_the_owner_that_started_first_however_slow_its_inspection() {
    let mut rig = Rig::new();
    rig.fake.run(Run { id: "zzz", service: "first", ..DB });
    rig.fake.run(Run { id: "aaa", service: "second", port: 4002, ..DB });
    rig.fake.run(Run { id: "mmm", service: "other", name: "it.other", port: 4003 });
    rig.fake.slow("zzz", Duration::from_secs(3));
    rig.watch();
    within(2, "another name does not wait", || rig.backend("it.other") == Some(4003)).await;
    assert!(rig.inspect("checkout.postgres").is_none());
    within(5, "the first", || rig.backend("checkout.postgres") == Some(4001)).await;
    within(5, "the second waits", || rig.refused().iter().any(|row| row.container == "c-aaa")).await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_starts_a_second_container_keeps_its_name_from_one_that_waits_for_it() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(Run { id: "b", service: "green", ..DB });
    within(5, "green has it", || rig.backend("checkout.postgres") == Some(4001)).await;
    rig.fake.run(Run { id: "a", service: "blue", port: 4002, ..DB });
    within(5, "blue waits", || rig.refused().len() == 1).await;
    // It was restarted meanwhile, and is now the younger one.
    rig.fake.change("b", |container| container.started_at = "2026-11-30T10:00:00Z".parse().ok());
    rig.fake.run(Run { id: "b2", service: "green", port: 4003, ..DB });
    rig.fake.change("b2", |container| container.started_at = "2026-11-30T10:00:01Z".parse().ok());
    within(5, "green's second has it", || rig.backend("checkout.postgres") == Some(4003)).await;
    let owner = rig.inspect("checkout.postgres").unwrap().owner_key;
    assert_eq!(owner, "docker:it:green:5432");
    rig.fake.remove("b2");
    within(5, "and then its first", || rig.backend("checkout.postgres") == Some(4001)).await;
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_goes_on_keeps_what_runs_and_ends_what_ended_meanwhile() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(DB);
    rig.fake.run(Run { id: "two", service: "api", name: "it.api", port: 4002 });
    within(5, "both", || rig.backend("checkout.postgres").is_some() && rig.backend("it.api").is_some()).await;
    rig.fake.change("one", |container| container.phase = Phase::Paused);
    within(5, "held", || rig.reason("checkout.postgres") == "its container c-one is paused").await;
    let containers = rig.docker.take().unwrap().close().await;
    assert_eq!(containers.len(), 2);
    rig.fake.remove("one");
    let mut changes = rig.mesh.events();
    let door = Arc::new(super::fake::Door(rig.fake.clone()));
    rig.docker = Some(Docker::resume_with(door, Config::default(), rig.mesh.clone(), containers));
    within(5, "the paused one ended", || rig.reason("checkout.postgres") == "its container c-one is gone").await;
    rig.fake.run(Run { id: "three", service: "web", name: "it.web", port: 4003 });
    within(5, "a new one", || rig.backend("it.web").is_some()).await;
    assert_eq!(rig.backend("it.api"), Some(4002));
    while let Ok(Some(event)) = tokio::time::timeout(std::time::Duration::from_millis(1), changes.next()).await {
        let gap = matches!(&*event, crate::mesh::Event::Changed { service } if service.name == "it.api" && service.status != "ready");
        assert!(!gap, "{event:?}");
    }
}
