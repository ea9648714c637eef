//! Stories of a whole mesh, with real sockets and files.
use super::rig::{Home, PORTS, context, echo, register, request, until};
use super::*;
use stado_fleet::wire::RegisterRequest;
use std::collections::HashMap;
use std::fs;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What comes back for `sent` through `port`; empty when the connection is closed without a byte.
async fn through(port: u16, sent: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    // A frontend without a backend may close before or after it took the bytes.
    let _ = stream.write_all(sent.as_bytes()).await;
    let _ = stream.shutdown().await;
    let mut back = Vec::new();
    let _ = stream.read_to_end(&mut back).await;
    String::from_utf8(back).unwrap()
}

#[tokio::test]
async fn a_registered_service_is_reached_and_its_address_outlives_producers() {
    let home = Home::new();
    let mesh = home.start();
    let answer = mesh.register(request("test.echo", echo().await), None).await.unwrap();
    let port = answer.frontend.port;
    assert_eq!(through(port, "hello").await, "hello");
    mesh.deregister(&answer.registration_id, Some(&answer.lease_token)).unwrap();
    let gone = mesh.resolve("test.echo").unwrap();
    assert_eq!((gone.status.as_str(), gone.frontend.port), ("unavailable", port));
    assert_eq!(gone.reason.as_deref(), Some("its producer deregistered"));
    assert!(gone.since.is_some());
    assert_eq!(through(port, "hello").await, "");
    let second = mesh.register(request("test.echo", echo().await), None).await.unwrap();
    assert_eq!(second.frontend.port, port);
    assert_eq!(through(port, "again").await, "again");
}

#[tokio::test]
async fn twenty_parallel_registrations_of_one_name_have_one_winner() {
    let home = Home::new();
    let mesh = home.start();
    let all = (0..20).map(|_| mesh.register(request("one", 9), None));
    let answers = futures_util::future::join_all(all).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 19));
    assert!(lost.iter().all(|answer| answer.as_ref().unwrap_err().code() == Code::NameConflict));
}

#[tokio::test]
async fn a_full_range_leaves_no_record_behind() {
    let home = Home::new();
    let mesh = home.start();
    for turn in 0..PORTS {
        register(&mesh, &format!("s{turn}")).await;
    }
    let refused = mesh.register(request("late", 9), None).await.unwrap_err();
    let (min, max) = (home.first_port, home.first_port + PORTS - 1);
    assert_eq!(refused.to_string(), format!("no free frontend port in range {min}-{max}"));
    assert!(mesh.resolve("late").is_err());
    mesh.forget("s0", true).await.unwrap();
    assert!(mesh.register(request("late", 9), None).await.is_ok(), "a forgotten port is free for others");
}

#[tokio::test]
async fn an_assignment_that_cannot_be_saved_is_no_assignment() {
    let home = Home::new();
    let mesh = home.start();
    fs::create_dir(home.state()).unwrap();
    let mut wish = request("a", 9);
    wish.preferred_port = home.first_port.into();
    let refused = mesh.register(wish.clone(), None).await.unwrap_err();
    assert_eq!(refused.code(), Code::Internal);
    assert!(refused.to_string().starts_with("allocate frontend: "), "{refused}");
    assert!(mesh.resolve("a").is_err());
    drop(std::net::TcpListener::bind(("127.0.0.1", home.first_port)).expect("the port is free again"));
    fs::remove_dir(home.state()).unwrap();
    assert_eq!(mesh.register(wish, None).await.unwrap().frontend.port, home.first_port);
}

#[tokio::test]
async fn a_lease_that_runs_out_leaves_the_name_to_the_next() {
    let home = Home::new();
    let mesh = home.start();
    let mut short = request("x", 9);
    short.ttl_seconds = 3;
    let first = mesh.register(short, None).await.unwrap();
    assert_eq!(first.ttl_seconds, 3);
    until("the lease runs out", || mesh.resolve("x").unwrap().status == "unavailable").await;
    let reason = mesh.resolve("x").unwrap().reason.unwrap();
    assert_eq!(reason, "its producer stopped renewing the lease");
    let second = register(&mesh, "x").await;
    let late = mesh.heartbeat(&first.registration_id, Some(&first.lease_token)).unwrap_err();
    assert_eq!(late.code(), Code::RegistrationNotFound);
    assert!(mesh.deregister(&first.registration_id, Some(&first.lease_token)).is_err());
    assert_eq!(mesh.inspect("x").unwrap().producer_id, second.registration_id);
    assert_eq!(mesh.resolve("x").unwrap().status, "ready");
}

#[tokio::test]
async fn the_same_owner_may_replace_its_backend_and_a_stale_goodbye_is_ignored() {
    let home = Home::new();
    let mesh = home.start();
    let claim = |producer: &str, port: u16| Publication {
        name: "db".parse().unwrap(),
        kind: Kind::Tcp,
        app_protocol: "postgres".into(),
        source: Source::Docker,
        owner_key: "docker:checkout:db:5432".into(),
        producer_id: producer.into(),
        container_id: producer.into(),
        backend: Backend {
            host: "127.0.0.1".into(),
            port,
            addr: format!("127.0.0.1:{port}").parse().unwrap(),
            via: None,
        },
        hostname: None,
        publish: false,
    };
    let first = mesh.publish(claim("old", 7), 0).await.unwrap();
    let second = mesh.publish(claim("new", 8), 0).await.unwrap();
    assert_eq!(first, second);
    assert!(!mesh.withdraw(&"db".parse().unwrap(), "old", "container stopped"));
    let now = mesh.inspect("db").unwrap();
    assert_eq!((now.backend.unwrap().port, now.docker_container_id.as_str()), (8, "new"));
    assert!(mesh.register(request("db", 9), None).await.is_err());
    assert!(mesh.withdraw(&"db".parse().unwrap(), "new", "container stopped"));
    assert_eq!(mesh.resolve("db").unwrap().reason.as_deref(), Some("container stopped"));
}

#[tokio::test]
async fn this_daemons_own_addresses_are_no_backend() {
    let home = Home::new();
    let mesh = home.start();
    let port = register(&mesh, "a").await.frontend.port;
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let mut wish = request("b", port);
        wish.backend.host = host.into();
        let refused = mesh.register(wish, None).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidBackend, "{host}");
        assert!(refused.to_string().contains("would go in circles"), "{refused}");
    }
    let mut wish = request("c", home.first_port + 1);
    wish.preferred_port = (home.first_port + 1).into();
    let granted = mesh.register(wish, None).await.unwrap();
    assert_ne!(granted.frontend.port, home.first_port + 1, "a producer's own port is never its frontend");
}

#[tokio::test]
async fn forget_pin_and_rename_do_what_they_say_and_refuse_the_rest() {
    let home = Home::new();
    let mesh = home.start();
    let answer = mesh.register(request("a", echo().await), None).await.unwrap();
    register(&mesh, "b").await;
    let taken = mesh.resolve("b").unwrap().frontend.port;
    let refused = mesh.forget("a", false).await.unwrap_err();
    assert!(refused.code() == Code::NameConflict && refused.to_string().contains("?force=true"), "{refused}");
    assert!(mesh.pin("a", taken.into()).await.unwrap_err().to_string().contains("kept for service b"));
    assert_eq!(mesh.pin("a", 0).await.unwrap_err().to_string(), "port 0 out of range");
    assert_eq!(mesh.pin("nope", 1).await.unwrap_err().to_string(), "service nope is unknown");
    let used = [answer.frontend.port, taken];
    let free = (home.first_port..).find(|port| !used.contains(port)).unwrap();
    let mut open = TcpStream::connect(("127.0.0.1", answer.frontend.port)).await.unwrap();
    open.write_all(b"x").await.unwrap();
    open.read_exact(&mut [0]).await.unwrap();
    assert_eq!(mesh.pin("a", free.into()).await.unwrap().frontend.port, free);
    assert_eq!(through(free, "pinned").await, "pinned");
    assert!(TcpStream::connect(("127.0.0.1", answer.frontend.port)).await.is_err());
    open.write_all(b"y").await.unwrap();
    assert_eq!(open.read_u8().await.unwrap(), b'y', "an open stream goes on");
    assert!(mesh.rename("a", "b").await.unwrap_err().to_string().contains("already exists"));
    assert_eq!(mesh.rename("a", "B").await.unwrap_err().code(), Code::InvalidName);
    let renamed = mesh.rename("a", "c").await.unwrap();
    assert_eq!((renamed.name.as_str(), renamed.status.as_str(), renamed.frontend.port), ("c", "ready", free));
    assert_eq!(through(free, "renamed").await, "renamed");
    assert!(mesh.heartbeat(&answer.registration_id, Some(&answer.lease_token)).is_ok());
    mesh.forget("c", true).await.unwrap();
    assert!(mesh.heartbeat(&answer.registration_id, Some(&answer.lease_token)).is_err());
    assert!(TcpStream::connect(("127.0.0.1", free)).await.is_err());
    assert!(!fs::read_to_string(home.state()).unwrap().contains("\"c\""));
}

#[tokio::test]
async fn an_idle_frontend_is_closed_and_its_port_kept() {
    let home = Home::new();
    let config = Config { idle_grace: Duration::from_millis(50), ..home.config() };
    let mesh = Mesh::start(config, context()).unwrap();
    let answer = register(&mesh, "a").await;
    mesh.deregister(&answer.registration_id, Some(&answer.lease_token)).unwrap();
    let port = answer.frontend.port;
    until("the port is closed", || std::net::TcpStream::connect(("127.0.0.1", port)).is_err()).await;
    let listed = mesh.resolve("a").unwrap();
    assert_eq!((listed.status.as_str(), listed.frontend.port), ("unavailable", port));
    let mut greedy = request("b", 9);
    greedy.preferred_port = port.into();
    assert_ne!(mesh.register(greedy, None).await.unwrap().frontend.port, port);
    assert_eq!(register(&mesh, "a").await.frontend.port, port);
}

#[tokio::test]
async fn a_second_mesh_on_one_state_is_refused_with_the_holder() {
    let home = Home::new();
    let _mesh = home.start();
    let refused = Mesh::start(home.config(), context()).unwrap_err().to_string();
    assert!(
        refused.contains("in use by another daemon") && refused.contains(&std::process::id().to_string()),
        "{refused}"
    );
}

#[tokio::test]
async fn events_begin_with_a_snapshot_and_tell_every_change() {
    let home = Home::new();
    let mesh = home.start();
    register(&mesh, "a").await;
    let mut changes = mesh.events();
    assert!(matches!(&*changes.next().await.unwrap(), Event::Snapshot { services } if services.len() == 1));
    register(&mesh, "b").await;
    assert!(matches!(&*changes.next().await.unwrap(), Event::Changed { service } if service.name == "b"));
    mesh.rename("b", "c").await.unwrap();
    assert!(matches!(&*changes.next().await.unwrap(), Event::Removed { renamed_to: Some(_), .. }));
    assert!(matches!(&*changes.next().await.unwrap(), Event::Changed { service } if service.name == "c"));
    for _ in 0..3000 {
        mesh.settle(&"a".parse().unwrap());
    }
    assert!(matches!(&*changes.next().await.unwrap(), Event::Snapshot { services } if services.len() == 2));
}

#[tokio::test]
async fn http_services_have_a_url_and_their_hostname_is_back_after_a_restart() {
    let home = Home::new();
    let mesh = home.start();
    let mut wish = request("web", 9);
    (wish.kind, wish.http_host) = ("http".into(), " Web.Test. ".into());
    let answer = mesh.register(wish.clone(), None).await.unwrap();
    assert_eq!(answer.frontend.endpoint(), "", "no listener, no address");
    let note = mesh.resolve("web").unwrap().note.unwrap();
    assert!(note.starts_with("no address: ") && note.contains("--http-enabled"), "{note}");
    let mut changes = mesh.events();
    changes.next().await;
    mesh.set_router(Listening { http: Some(8088), ..Listening::default() });
    assert_eq!(mesh.resolve("web").unwrap().frontend.url, "http://web.test:8088");
    assert!(matches!(&*changes.next().await.unwrap(), Event::Changed { service } if service.note.is_none()));
    drop(changes);
    mesh.shutdown().await;
    drop(mesh);
    let mesh = home.start();
    let back = mesh.inspect("web").unwrap();
    assert_eq!((back.status.as_str(), back.hostname.as_str()), ("unavailable", "web.test"));
    let site = mesh.sites().routes().find("web.test").unwrap();
    assert!(matches!(&site.backend, conn::Backend::None(why) if why.contains("not back since restart")));
    assert!(mesh.register(wish, None).await.is_ok());
}

#[tokio::test]
async fn a_hostname_of_an_earlier_run_is_its_owners_until_that_one_is_forgotten() {
    let home = Home::new();
    let mesh = home.start();
    mesh.register(http("checkout.api", ""), None).await.unwrap();
    mesh.shutdown().await;
    drop(mesh);
    let mesh = home.start();
    for thief in [http("checkout-api", ""), http("other", "Checkout-API.localhost.")] {
        let refused = mesh.register(thief, None).await.unwrap_err();
        assert_eq!(refused.code(), Code::NameConflict);
        assert_eq!(refused.to_string(), "hostname checkout-api.localhost is already owned by service checkout.api");
    }
    let owner = mesh.sites().routes().find("checkout-api.localhost").unwrap().service.clone();
    assert_eq!(&*owner, "checkout.api", "it answers 503 and not somebody else's pages");
    assert!(mesh.inspect("other").is_err(), "a refusal leaves nothing behind");
    mesh.register(http("checkout.api", ""), None).await.unwrap();
    mesh.forget("checkout.api", true).await.unwrap();
    mesh.register(http("checkout-api", ""), None).await.unwrap();
    mesh.shutdown().await;
    drop(mesh);
    assert_eq!(home.start().inspect("checkout-api").unwrap().hostname, "checkout-api.localhost");
}

#[tokio::test]
async fn a_port_taken_meanwhile_is_told_with_its_holder_and_replaced() {
    let home = Home::new();
    let mesh = home.start();
    let port = register(&mesh, "a").await.frontend.port;
    mesh.shutdown().await;
    drop(mesh);
    let _thief = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let mesh = home.start();
    let listed = mesh.resolve("a").unwrap();
    let reason = listed.reason.unwrap();
    assert!(reason.contains(&format!("127.0.0.1:{port}")) && reason.contains("another port"), "{reason}");
    let moved = register(&mesh, "a").await.frontend.port;
    assert_ne!(moved, port);
    assert!(fs::read_to_string(home.state()).unwrap().contains(&moved.to_string()));
    assert!(mesh.allocator().holder(port).is_none(), "the lost port is not kept");
}

/// Kill and restart: a runtime that is dropped takes its tasks and sockets with it, as a killed process does.
#[test]
fn every_acknowledged_port_comes_back_after_a_kill() {
    let home = tokio::runtime::Runtime::new().unwrap().block_on(async { Home::new() });
    let mut acknowledged: HashMap<String, u16> = HashMap::new();
    for round in 0..12u16 {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let mesh = home.start();
            for (name, port) in &acknowledged {
                let listed = mesh.resolve(name).unwrap();
                assert_eq!((listed.frontend.port, listed.status.as_str()), (*port, "unavailable"), "{name}");
                assert_eq!(listed.reason.as_deref(), Some("producer not back since restart"));
                assert!(TcpStream::connect(("127.0.0.1", *port)).await.is_ok(), "{name}");
            }
            let (told, mut hear) = tokio::sync::mpsc::unbounded_channel();
            for turn in 0..6 {
                let (mesh, told) = (mesh.clone(), told.clone());
                tokio::spawn(async move {
                    let name = format!("s{}", (round * 5 + turn) % 17);
                    if let Ok(answer) = mesh.register(request(&name, 9), None).await {
                        let _ = told.send((name, answer.frontend.port));
                    }
                });
            }
            // Killed after some of the answers, at another one each round.
            for _ in 0..(round % 6) {
                let (name, port) = hear.recv().await.unwrap();
                assert_eq!(*acknowledged.entry(name).or_insert(port), port);
            }
            while let Ok((name, port)) = hear.try_recv() {
                acknowledged.insert(name, port);
            }
        });
        runtime.shutdown_timeout(Duration::from_secs(5));
        home.until_free();
    }
    assert!(acknowledged.len() >= 10, "the story needs acknowledged ports: {}", acknowledged.len());
}

/// Everything at once, with the reaper at every turn: nothing locks up, and at rest the frontends say what the registry says.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_from_all_sides_end_in_one_truth() {
    let home = Home::new();
    let mesh = Mesh::start(Config { idle_grace: Duration::from_millis(1), ..home.config() }, context()).unwrap();
    let worker = |turn: u16| {
        let mesh = mesh.clone();
        async move {
            for step in 0..30u16 {
                let name = format!("s{}", (turn + step) % 5);
                let Ok(answer) = mesh.register(request(&name, 100 + turn), None).await else { continue };
                let (id, token) = (answer.registration_id, answer.lease_token);
                assert!(mesh.list().len() <= 17);
                let _ = mesh.heartbeat(&id, Some(&token));
                mesh.render_metrics();
                mesh.close_idle().await;
                let _ = mesh.deregister(&id, Some(&token));
                if step % 7 == 0 {
                    let _ = mesh.forget(&name, true).await;
                }
            }
            mesh.register(request(&format!("last{turn}"), 100 + turn), None).await.unwrap();
        }
    };
    let all = futures_util::future::join_all((0..12).map(|turn| tokio::spawn(worker(turn))));
    let ended = tokio::time::timeout(Duration::from_secs(60), all).await.expect("nothing locks up");
    ended.into_iter().for_each(|task| task.unwrap());
    for turn in 0..12u16 {
        let name = format!("last{turn}").parse().unwrap();
        assert!(matches!(mesh.current_backend(&name), conn::Backend::Local(addr) if addr.port == 100 + turn));
        assert!(mesh.frontends.addr(&name).is_some());
    }
}

#[tokio::test]
async fn a_frontend_is_also_opened_on_further_addresses() {
    let home = Home::new();
    let config = Config { also_bind: vec!["127.0.0.77".parse().unwrap()], ..home.config() };
    let mesh = Mesh::start(config, context()).unwrap();
    let port = mesh.register(request("a", echo().await), None).await.unwrap().frontend.port;
    let mut stream = TcpStream::connect(("127.0.0.77", port)).await.unwrap();
    stream.write_all(b"x").await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'x');
    let mut wish = request("b", port);
    wish.backend.host = "127.0.0.77".into();
    assert!(mesh.register(wish, None).await.is_err(), "that address is ours too");
}

#[tokio::test]
async fn a_name_that_became_http_keeps_its_old_port_for_itself() {
    let home = Home::new();
    let mesh = home.start();
    let port = register(&mesh, "a").await.frontend.port;
    mesh.shutdown().await;
    drop(mesh);
    let mesh = home.start();
    let mut wish = request("a", 9);
    (wish.kind, wish.http_host) = ("http".into(), "a.test".into());
    mesh.register(wish, None).await.unwrap();
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    mesh.shutdown().await;
    drop(mesh);
    let mesh = home.start();
    assert_eq!(mesh.inspect("a").unwrap().kind, "http");
    assert_eq!(mesh.allocator().holder(port).as_deref(), Some("service a"));
    assert_eq!(register(&mesh, "a").await.frontend.port, port, "after a restart the kind may change back");
}

fn http(name: &str, host: &str) -> RegisterRequest {
    RegisterRequest { kind: "http".into(), http_host: host.into(), ..request(name, 9) }
}

#[tokio::test]
async fn a_hostname_is_made_from_the_name_and_belongs_to_whoever_had_it_first() {
    let home = Home::new();
    let mesh = home.start();
    mesh.register(http("checkout.api", ""), None).await.unwrap();
    assert_eq!(mesh.inspect("checkout.api").unwrap().hostname, "checkout-api.localhost");
    let refused = mesh.register(http("checkout-api", ""), None).await.unwrap_err();
    assert_eq!(refused.to_string(), "hostname checkout-api.localhost is already owned by service checkout.api");
    let reserved = mesh.register(http("stado", " "), None).await.unwrap_err();
    assert_eq!(reserved.code(), Code::InvalidRequest);
    assert!(reserved.to_string().contains("is reserved"), "{reserved}");
    let long = mesh.register(http(&"a".repeat(64), ""), None).await.unwrap_err();
    assert!(long.to_string().starts_with("http_host is required"), "{long}");
}

#[tokio::test]
async fn a_service_that_has_a_hostname_keeps_it_when_it_names_none() {
    let home = Home::new();
    let mesh = home.start();
    let first = mesh.register(http("a", "shop.test"), None).await.unwrap();
    mesh.deregister(&first.registration_id, Some(&first.lease_token)).unwrap();
    mesh.register(http("a", ""), None).await.unwrap();
    assert_eq!(mesh.inspect("a").unwrap().hostname, "shop.test");
}

#[tokio::test]
async fn the_router_follows_every_change_of_a_service_at_once() {
    let home = Home::new();
    let mesh = home.start();
    let routes = mesh.sites().routes();
    let backend = |host: &str| routes.find(host).map(|site| (site.service.to_string(), site.backend.clone()));
    let first = mesh.register(http("a", "*.a.test"), None).await.unwrap();
    assert!(matches!(backend("x.a.test"), Some((_, conn::Backend::Local(_)))));
    let other = mesh.register(http("b", ""), None).await.unwrap();
    mesh.deregister(&first.registration_id, Some(&first.lease_token)).unwrap();
    assert!(matches!(backend("x.a.test"), Some((_, conn::Backend::None(why))) if why.contains("deregistered")));
    mesh.rename("b", "c").await.unwrap();
    assert_eq!(backend("b.localhost").unwrap().0, "c", "a renamed service keeps its address");
    mesh.deregister(&other.registration_id, Some(&other.lease_token)).unwrap();
    mesh.forget("c", false).await.unwrap();
    assert!(backend("b.localhost").is_none());
}

/// Takes `mesh` over as another process would, with copies of its descriptors.
fn taken_up(mesh: &Arc<Mesh>, home: &Home) -> Arc<Mesh> {
    use std::os::fd::AsFd;
    let handed = serde_json::to_string(&mesh.hand_out()).unwrap();
    let lent = mesh.lend().into_iter().map(|lent| {
        let copies = lent.listeners.iter().map(|listener| listener.as_fd().try_clone_to_owned().unwrap()).collect();
        let bound = conn::Bound::received(lent.bind, copies, lent.missing_half).unwrap();
        hand_over::Parked { service: lent.service, addr: lent.addr, bound: vec![bound] }
    });
    let lock = stado_fleet::disk::Lock::adopt_at(mesh.lend_lock().unwrap(), &home.config().lock_path());
    let handed = serde_json::from_str(&handed).unwrap();
    Mesh::take_up(home.config(), context(), handed, lock.unwrap(), lent.collect()).unwrap()
}

#[tokio::test]
async fn a_mesh_that_was_taken_up_is_the_same_and_its_leases_end_when_they_would_have_ended() {
    let home = Home::new();
    let mesh = home.start();
    let port = register(&mesh, "a").await.frontend.port;
    let lost =
        mesh.register(stado_fleet::wire::RegisterRequest { ttl_seconds: 3, ..request("lost", 9) }, None).await.unwrap();
    let gone = register(&mesh, "gone").await;
    mesh.register(http("web", ""), None).await.unwrap();
    mesh.deregister(&gone.registration_id, Some(&gone.lease_token)).unwrap();
    let held = Publication {
        name: "held".parse().unwrap(),
        kind: Kind::Tcp,
        app_protocol: "postgres".into(),
        source: Source::Docker,
        owner_key: "docker:shop:db:5432".into(),
        producer_id: "one".into(),
        container_id: "one".into(),
        backend: backend::check("127.0.0.1", 9).await.unwrap(),
        hostname: None,
        publish: false,
    };
    mesh.hold(held, 0, "its container x is paused").await.unwrap();
    let left = |mesh: &Mesh| {
        let (core, now) = (mesh.read(), mesh.clock.now());
        let lease =
            core.leases.iter().find(|(lease, _)| lease.id == lost.registration_id).map(|(lease, _)| lease.expires);
        lease.unwrap().saturating_sub(now.tick)
    };
    assert!(mesh.freeze(Duration::from_secs(10)).await);
    let (before, services) = (left(&mesh), mesh.list());
    let next = taken_up(&mesh, &home);
    assert!(left(&next) <= before && next.list() == services);
    let site = next.sites().routes().find("web.localhost").map(|site| site.backend.clone());
    assert!(matches!(site, Some(conn::Backend::Local(_))));
    for name in ["a", "gone", "held"] {
        assert_eq!(next.inspect(name).unwrap(), mesh.inspect(name).unwrap());
    }
    mesh.leave().await;
    next.begin();
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_ok());
    let (id, token) = (&lost.registration_id, Some(lost.lease_token.as_str()));
    assert!(next.heartbeat(id, Some("wrong")).is_err() && next.heartbeat(id, token).is_ok());
    until("the lease has ended", || next.resolve("lost").unwrap().status == "unavailable").await;
    assert!(next.heartbeat(id, token).is_err());
    assert_eq!(next.allocator().holder(port).as_deref(), Some("service a"));
}
