//! Rules 1, 2, 7, 8 and 9: what is bound, served, moved and counted.
use super::support::*;
use crate::conn::{Backend, Context, Families, NoFleet, bind, holder_of, ledger::Ledger};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn a_bound_port_accepts_before_its_frontend_starts() {
    let bound = free_port();
    let mut client = TcpStream::connect(bound.addr).await.unwrap();
    let context = Context::new(Arc::new(NoFleet), Ledger::new());
    let _rig = Rig::on(bound, None, local(greeter("hello").await), context);
    assert_eq!(read_exact(&mut client, 5).await, b"hello");
}

#[tokio::test]
async fn no_second_socket_shares_the_port_even_with_reuseport() {
    let bound = free_port();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.set_reuse_port(true).unwrap();
    let refused = socket.bind(&bound.addr.into()).and_then(|()| socket.listen(1)).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::AddrInUse);
    let error = bind(bound.addr, Families::AtLeastOne).unwrap_err();
    assert_eq!(error.to_string(), format!("could not bind {}: {}", bound.addr, error.source));
}

#[tokio::test]
async fn both_loopback_families_reach_the_backend() {
    let rig = Rig::mesh(local(greeter("both").await));
    for host in ["127.0.0.1", "::1"] {
        let mut client = TcpStream::connect((host, rig.addr.port())).await.unwrap();
        assert_eq!(read_exact(&mut client, 4).await, b"both", "{host}");
    }
}

#[tokio::test]
async fn a_half_taken_port_is_skipped_or_served_with_its_holder_named_and_taken_when_free() {
    let probe = free_port();
    let addr = probe.addr;
    drop(probe);
    let stranger = std::net::TcpListener::bind(("::1", addr.port())).unwrap();
    let refused = bind(addr, Families::Both).unwrap_err();
    assert_eq!(refused.addr, SocketAddr::new("::1".parse().unwrap(), addr.port()));

    let bound = bind(addr, Families::AtLeastOne).unwrap();
    let holder = holder_of(refused.addr).unwrap();
    assert!(holder.starts_with(&format!("pid {} (", std::process::id())), "{holder}");
    assert_eq!(bound.missing_half, Some(format!("{} is held by {holder}", refused.addr)));

    let context = Context::new(Arc::new(NoFleet), Ledger::new());
    let rig = Rig::on(bound, None, local(greeter("half").await), context);
    assert!(rig.frontend().missing_half().is_some());
    assert_eq!(read_exact(&mut rig.connect().await, 4).await, b"half");
    drop(stranger);
    until("the missing half is taken", || rig.frontend().missing_half().is_none()).await;
    let mut client = TcpStream::connect(refused.addr).await.unwrap();
    assert_eq!(read_exact(&mut client, 4).await, b"half");
}

#[tokio::test]
async fn an_address_whose_own_family_is_held_is_not_served_on_the_other() {
    let probe = free_port();
    let addr = probe.addr;
    drop(probe);
    let _stranger = std::net::TcpListener::bind(addr).unwrap();
    assert_eq!(bind(addr, Families::AtLeastOne).unwrap_err().addr, addr);
}

#[tokio::test]
async fn a_restart_does_not_fail_on_time_wait() {
    let mut rig = Rig::mesh(Backend::None("starting".into()));
    // The frontend closes first: its side of the connection goes to TIME_WAIT.
    let mut client = rig.connect().await;
    assert_eq!(read_all(&mut client).await.unwrap(), b"");
    drop(client);
    rig.frontend.take().unwrap().close(Duration::ZERO).await;
    bind(rig.addr, Families::Both).unwrap();
}

#[tokio::test]
async fn other_loopback_addresses_are_bound_alone_and_port_0_never() {
    let bound = free_port();
    let other = bind(SocketAddr::from(([127, 0, 0, 2], bound.addr.port())), Families::Both).unwrap();
    assert_eq!(other.listeners.len(), 1);
    assert!(bind(SocketAddr::from(([127, 0, 0, 1], 0)), Families::Both).is_err());
}

#[tokio::test]
async fn without_a_backend_a_client_is_accepted_and_closed_at_once() {
    let rig = Rig::mesh(Backend::None("producer not back since restart".into()));
    assert_eq!(read_all(&mut rig.connect().await).await.unwrap(), b"");
    until("the refusal is counted", || rig.counters().refused_no_backend == 1).await;
    assert_eq!(rig.counters().opened, 0);
}

#[tokio::test]
async fn a_backend_change_moves_new_connections_only() {
    let rig = Rig::mesh(local(greeter("one").await));
    let mut old = rig.connect().await;
    assert_eq!(read_exact(&mut old, 3).await, b"one");
    rig.frontend().set_backend(local(greeter("two").await));
    assert_eq!(read_exact(&mut rig.connect().await, 3).await, b"two");
    rig.frontend().set_backend(Backend::None("gone".into()));
    assert_eq!(read_all(&mut rig.connect().await).await.unwrap(), b"");
    old.write_all(b"still here").await.unwrap();
    assert_eq!(read_exact(&mut old, 10).await, b"still here");
}

#[tokio::test]
async fn a_change_to_one_service_touches_no_stream_of_another() {
    let context = Context::new(Arc::new(NoFleet), Ledger::new());
    let (one, two) = (local(greeter("one").await), local(greeter("two").await));
    let steady = Rig::on(free_port(), None, one, context.clone());
    let mut changing = Rig::on(free_port(), None, two.clone(), context);
    let (mut stays, mut ends) = (steady.connect().await, changing.connect().await);
    assert_eq!((read_exact(&mut stays, 3).await, read_exact(&mut ends, 3).await), (b"one".to_vec(), b"two".to_vec()));
    changing.frontend().set_backend(Backend::None("stopped".into()));
    changing.frontend().set_backend(two);
    changing.frontend.take().unwrap().close(Duration::ZERO).await;
    expect_reset(&mut ends).await;
    stays.write_all(b"here").await.unwrap();
    assert_eq!(read_exact(&mut stays, 4).await, b"here");
}

#[tokio::test]
async fn a_refusing_backend_closes_the_client_and_the_failure_names_the_address() {
    let (listener, addr) = listener().await;
    drop(listener);
    let rig = Rig::mesh(local(addr));
    assert_eq!(read_all(&mut rig.connect().await).await.unwrap(), b"");
    until("the refusal is remembered", || rig.context.ledger.recent("svc").len() == 1).await;
    let recent = rig.context.ledger.recent("svc").remove(0);
    assert!(recent.outcome.to_string().contains(&addr.to_string()), "{}", recent.outcome);
    assert_eq!(rig.counters().refused_unreachable, 1);
}

#[tokio::test]
async fn a_backend_named_localhost_is_reached_on_either_family_and_remembered() {
    let v6 = tokio::net::TcpListener::bind("[::1]:0").await.unwrap();
    let port = v6.local_addr().unwrap().port();
    let rig = Rig::mesh(Backend::Local(format!("localhost:{port}").parse().unwrap()));
    for _ in 0..2 {
        let (mut client, mut served) = rig.pair(&v6).await;
        served.write_all(b"six").await.unwrap();
        assert_eq!(read_exact(&mut client, 3).await, b"six");
    }
    drop(v6);
    assert_eq!(read_all(&mut rig.connect().await).await.unwrap(), b"");
    until("the refusal is remembered", || rig.context.ledger.recent("svc").iter().any(|r| r.opened.is_none())).await;
    let refused = rig.context.ledger.recent("svc").into_iter().find(|r| r.opened.is_none()).unwrap();
    let cause = refused.outcome.to_string();
    assert!(cause.contains(&format!("127.0.0.1:{port}")) && cause.contains(&format!("[::1]:{port}")), "{cause}");
}

#[tokio::test]
async fn a_full_service_closes_the_excess_and_counts_it() {
    let addr = greeter("in").await;
    let rig = Rig::mesh_with(local(addr), |context| context.limits.connections = 3);
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut client = rig.connect().await;
        assert_eq!(read_exact(&mut client, 2).await, b"in");
        held.push(client);
    }
    for _ in 0..5 {
        assert_eq!(read_all(&mut rig.connect().await).await.unwrap(), b"");
    }
    until("the excess is counted", || rig.counters().refused_limit == 5).await;
    held.clear();
    until("the places are given back", || rig.counters().active == 0).await;
    assert_eq!(read_exact(&mut rig.connect().await, 2).await, b"in");
}

#[tokio::test]
async fn retiring_frees_the_port_and_leaves_streams_alone() {
    let mut rig = Rig::mesh(local(greeter("x").await));
    let mut client = rig.connect().await;
    assert_eq!(read_exact(&mut client, 1).await, b"x");
    let ending = rig.frontend.take().unwrap().retire().await;
    bind(rig.addr, Families::Both).unwrap();
    client.write_all(b"on").await.unwrap();
    assert_eq!(read_exact(&mut client, 2).await, b"on");
    assert!(!ending.is_over());
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await.unwrap(), b"");
    ending.close(PATIENCE).await;
}

#[tokio::test]
async fn released_listeners_serve_on_under_another_frontend_without_refusing_anyone() {
    let mut rig = Rig::mesh(local(greeter("one").await));
    let mut old = rig.connect().await;
    assert_eq!(read_exact(&mut old, 3).await, b"one");
    let bound = rig.frontend.take().unwrap().release().await.0.unwrap();
    let mut between = rig.connect().await;
    let rig = Rig::on(bound, None, local(greeter("two").await), rig.context.clone());
    assert_eq!(read_exact(&mut between, 3).await, b"two");
    assert_eq!(rig.context.own.purpose(rig.addr).as_deref(), Some("svc"));
    old.write_all(b"on").await.unwrap();
    assert_eq!(read_exact(&mut old, 2).await, b"on");
}

#[tokio::test]
async fn closing_ends_as_soon_as_the_last_stream_does() {
    let mut rig = Rig::mesh(local(greeter("x").await));
    let mut client = rig.connect().await;
    assert_eq!(read_exact(&mut client, 1).await, b"x");
    let closing = tokio::spawn(rig.frontend.take().unwrap().close(Duration::from_secs(3600)));
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await.unwrap(), b"");
    tokio::time::timeout(PATIENCE, closing).await.unwrap().unwrap();
}

#[tokio::test]
async fn closing_resets_what_outlives_the_grace() {
    let mut rig = Rig::mesh(local(greeter("x").await));
    let mut client = rig.connect().await;
    assert_eq!(read_exact(&mut client, 1).await, b"x");
    rig.frontend.take().unwrap().close(Duration::from_millis(10)).await;
    expect_reset(&mut client).await;
    assert_eq!(rig.context.ledger.counters("svc"), None);
}

#[tokio::test]
async fn bytes_are_counted_each_way() {
    let rig = Rig::mesh(local(greeter("12345").await));
    let mut client = rig.connect().await;
    client.write_all(b"abc").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await.unwrap(), b"12345abc");
    until("the connection is over", || rig.counters().active == 0).await;
    let counters = rig.counters();
    assert_eq!((counters.opened, counters.bytes_up, counters.bytes_down), (1, 3, 8));
    let recent = rig.context.ledger.recent("svc").remove(0);
    assert_eq!((recent.bytes_up, recent.bytes_down, recent.outcome), (3, 8, crate::conn::ledger::Outcome::Done));
}

#[tokio::test]
async fn while_accepting_is_held_clients_wait_and_nobody_is_refused() {
    let backend = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let rig = Rig::mesh(local(backend.local_addr().unwrap()));
    let (mut before, mut served) = rig.pair(&backend).await;
    rig.context.hold.hold();
    let (waiting, also) = (rig.connect().await, rig.connect().await);
    // Streams go on meanwhile, for as long as accepting would take many times.
    for n in 0..100 {
        before.write_u8(n).await.unwrap();
        assert_eq!(served.read_u8().await.unwrap(), n);
    }
    // What is true when it goes on counts, not what was when they came.
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    rig.frontend().set_backend(local(other.local_addr().unwrap()));
    rig.context.hold.release();
    for _ in [waiting, also] {
        tokio::time::timeout(PATIENCE, other.accept()).await.unwrap().unwrap();
    }
}
