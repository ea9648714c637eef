//! The engine is away, silent, or tells half of it.
use super::fake::Run;
use super::{Rig, within};
use std::sync::atomic::Ordering;
use std::time::Duration;

const DB: Run<'_> = Run { id: "one", service: "db", name: "checkout.postgres", port: 4001 };

#[tokio::test(start_paused = true)]
async fn ten_minutes_away_change_nothing_and_then_everything_at_once() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(DB);
    rig.fake.run(Run { id: "gone", service: "x", name: "it.gone", port: 4009 });
    within(5, "both", || rig.backend("checkout.postgres").is_some() && rig.backend("it.gone").is_some()).await;
    let frontend = rig.frontend("checkout.postgres");
    rig.fake.leave();
    within(5, "degraded", || rig.engine() == "degraded").await;
    let before = rig.fake.connects.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(600)).await;
    let attempts = rig.fake.connects.load(Ordering::Relaxed) - before;
    assert!((20..40).contains(&attempts), "{attempts} attempts in ten minutes, at most 30 s apart");
    assert_eq!(rig.backend("checkout.postgres"), Some(4001), "what is known keeps being served");
    let engine = rig.mesh.refused().borrow().docker.clone().unwrap();
    assert!(engine.error.unwrap().contains("is not there") && engine.reached);
    rig.fake.remove("one");
    rig.fake.remove("gone");
    rig.fake.run(Run { id: "two", port: 4002, ..DB });
    rig.fake.come_back();
    within(31, "found again", || rig.backend("checkout.postgres") == Some(4002)).await;
    within(1, "what ended meanwhile", || rig.reason("it.gone") == "its container c-gone is gone").await;
    assert_eq!((rig.engine().as_str(), rig.frontend("checkout.postgres")), ("connected", frontend));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_comes_after_the_daemon_is_found() {
    let mut rig = Rig::new();
    rig.fake.leave();
    rig.fake.run(DB);
    rig.watch();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(rig.engine(), "degraded");
    rig.fake.come_back();
    within(31, "found", || rig.backend("checkout.postgres") == Some(4001)).await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_engine_is_given_up_and_tried_again() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(DB);
    within(5, "ready", || rig.backend("checkout.postgres").is_some()).await;
    rig.fake.hush(true);
    within(16, "a list and its deadline", || rig.engine() == "degraded").await;
    assert_eq!(rig.backend("checkout.postgres"), Some(4001));
    rig.fake.hush(false);
    within(45, "connected", || rig.engine() == "connected").await;
}

#[tokio::test(start_paused = true)]
async fn a_list_repairs_what_no_event_told() {
    let mut rig = Rig::new();
    rig.watch();
    within(5, "connected", || rig.engine() == "connected").await;
    rig.fake.mute();
    rig.fake.run(DB);
    within(6, "found", || rig.backend("checkout.postgres") == Some(4001)).await;
    rig.fake.publish("one", 4002);
    within(6, "moved", || rig.backend("checkout.postgres") == Some(4002)).await;
    rig.fake.remove("one");
    within(6, "gone", || rig.backend("checkout.postgres").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_ends_leaves_its_services_in_the_mesh() {
    let mut rig = Rig::new();
    rig.watch();
    rig.fake.run(DB);
    within(5, "ready", || rig.backend("checkout.postgres").is_some()).await;
    rig.docker.take().unwrap().close().await;
    assert_eq!(rig.backend("checkout.postgres"), Some(4001));
}
