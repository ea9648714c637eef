//! Through bollard and a socket: many at once, half events, a socket that is replaced.
use super::served::{Served, Store};
use super::{quick, within};
use crate::docker::{Config, Docker, Lookup};
use crate::mesh::rig::{Home, context};
use crate::mesh::{Config as MeshConfig, Mesh};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

struct Engine {
    dir: tempfile::TempDir,
    home: Home,
}

impl Engine {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), home: Home::new() }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("docker.sock")
    }

    fn watch(&self, mesh: &Arc<Mesh>) -> Docker {
        let lookup = Lookup { host: Some(format!("unix://{}", self.socket().display())), ..Lookup::default() };
        Docker::start(Config { lookup, timing: quick(), ..Config::default() }, mesh.clone(), None)
    }
}

fn backend(mesh: &Mesh, name: &str) -> Option<i64> {
    mesh.inspect(name).ok()?.backend.map(|backend| backend.port)
}

fn ready(mesh: &Mesh) -> usize {
    mesh.list().iter().filter(|service| service.status == "ready").count()
}

#[tokio::test]
async fn three_hundred_containers_that_start_at_once_are_all_registered_a_few_at_a_time() {
    let engine = Engine::new();
    let (store, mesh) = (Store::new(), {
        let config = MeshConfig { port_min: 12_000, port_max: 14_999, ..engine.home.config() };
        Mesh::start(config, context()).unwrap()
    });
    let _served = Served::start(&engine.socket(), store.clone());
    let docker = engine.watch(&mesh);
    within(10, "connected", || mesh.health().docker == "connected").await;
    for n in 0..300u16 {
        store.run(&format!("c{n:03}"), &format!("it.n{n}"), 30_000 + n);
    }
    within(60, "all registered", || ready(&mesh) == 300).await;
    let most = store.most_at_once.load(Ordering::SeqCst);
    assert!((2..=8).contains(&most), "{most} inspections at a time");
    assert_eq!(backend(&mesh, "it.n299"), Some(30_299));
    docker.close().await;
}

#[tokio::test]
async fn half_an_event_and_a_broken_stream_are_followed_by_a_full_list() {
    let engine = Engine::new();
    let (store, mesh) = (Store::new(), engine.home.start());
    let _served = Served::start(&engine.socket(), store.clone());
    let docker = engine.watch(&mesh);
    within(10, "connected", || mesh.health().docker == "connected").await;
    store.run("a", "it.a", 4001);
    within(10, "by its event", || backend(&mesh, "it.a") == Some(4001)).await;
    store.tell(r#"{"Type":"container","Action":"sta"#);
    store.break_events();
    store.run("b", "it.b", 4002);
    store.forget("a");
    within(10, "by the list", || backend(&mesh, "it.b") == Some(4002) && backend(&mesh, "it.a").is_none()).await;
    within(10, "connected again", || mesh.health().docker == "connected").await;
    docker.close().await;
}

#[tokio::test]
async fn an_engine_that_is_replaced_by_another_at_the_same_path_is_found() {
    let engine = Engine::new();
    let (store, mesh) = (Store::new(), engine.home.start());
    let served = Served::start(&engine.socket(), store.clone());
    store.run("a", "it.a", 4001);
    let docker = engine.watch(&mesh);
    within(10, "the first", || backend(&mesh, "it.a") == Some(4001)).await;
    drop(served);
    store.break_events();
    within(10, "degraded", || mesh.health().docker == "degraded").await;
    assert_eq!(backend(&mesh, "it.a"), Some(4001), "served meanwhile");
    let next = Store::new();
    next.run("b", "it.a", 4002);
    let _served = Served::start(&engine.socket(), next);
    within(10, "the second", || backend(&mesh, "it.a") == Some(4002)).await;
    docker.close().await;
}

#[tokio::test]
async fn errors_of_the_socket_say_what_to_do() {
    let engine = Engine::new();
    let mesh = engine.home.start();
    let docker = engine.watch(&mesh);
    let error = || mesh.refused().borrow().docker.as_ref().and_then(|docker| docker.error.clone()).unwrap_or_default();
    within(10, "missing", || error().ends_with("is not there: is one installed and running?")).await;
    drop(std::os::unix::net::UnixListener::bind(engine.socket()).unwrap());
    within(10, "dead", || error().ends_with("its socket is there and nobody answers")).await;
    docker.close().await;
}
