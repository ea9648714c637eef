//! Rule 4: this daemon is never a backend of its own.
use super::fleet::route;
use super::support::*;
use crate::conn::{Backend, Context, NoFleet, ledger::Ledger};
use std::net::SocketAddr;
use std::sync::Arc;

async fn refusal_of(rig: &Rig) -> String {
    assert_eq!(read_all(&mut rig.connect().await).await.unwrap(), b"");
    until("the loop is refused", || rig.counters().refused_loop == 1).await;
    until("the refusal is remembered", || !rig.context.ledger.recent("svc").is_empty()).await;
    rig.context.ledger.recent("svc").remove(0).outcome.to_string()
}

#[tokio::test]
async fn a_frontend_does_not_dial_itself_under_any_of_its_names() {
    for host in ["127.0.0.1", "[::1]", "localhost"] {
        let bound = free_port();
        let backend = Backend::Local(format!("{host}:{}", bound.addr.port()).parse().unwrap());
        let addr = bound.addr;
        let rig = Rig::on(bound, None, backend, Context::new(Arc::new(NoFleet), Ledger::new()));
        let said = refusal_of(&rig).await;
        assert_eq!(
            said,
            format!(
                "refused: service svc resolves to {addr}, which is this adapter's own bind: the service directory must carry \
                 the address the service listens on, not the stable port published for its clients"
            )
        );
    }
}

#[tokio::test]
async fn a_frontend_does_not_dial_another_listener_of_the_daemon() {
    let context = Context::new(Arc::new(NoFleet), Ledger::new());
    let api: SocketAddr = "127.0.0.1:17600".parse().unwrap();
    context.own.enter(api, "the resolution API".into());
    let rig = Rig::on(free_port(), None, local(api), context.clone());
    let said = refusal_of(&rig).await;
    assert!(said.contains("127.0.0.1:17600, where this same daemon listens for the resolution API"), "{said}");

    context.own.leave(api);
    assert_eq!(context.own.purpose(api), None);
    assert_eq!(context.own.purpose(rig.addr).as_deref(), Some("svc"));
    let addr = rig.addr;
    drop(rig);
    assert_eq!(context.own.purpose(addr), None);
}

#[tokio::test]
async fn a_listener_on_every_address_is_none_of_its_own_backends() {
    let own = crate::conn::OwnListeners::default();
    own.enter("0.0.0.0:7".parse().unwrap(), "service db".into());
    own.enter("[::]:8".parse().unwrap(), "the router".into());
    let purpose = |addr: &str| own.purpose(addr.parse().unwrap());
    for name in ["127.0.0.1:7", "127.0.0.2:7", "0.0.0.0:7"] {
        assert_eq!(purpose(name).as_deref(), Some("service db"), "{name}");
    }
    assert_eq!(purpose("[::1]:8").as_deref(), Some("the router"));
    for other in ["127.0.0.1:8", "[::1]:7", "127.0.0.1:9"] {
        assert_eq!(purpose(other), None, "{other}");
    }
}

#[tokio::test]
async fn an_adapter_takes_the_step_of_this_daemons_own_mesh_frontend_and_never_dials_it() {
    let mesh = Rig::mesh(local(greeter("hi").await));
    let adapter = Rig::on(free_port(), Some("fleet"), route(mesh.addr, true), mesh.context.clone());
    let opened = |consumer: Option<&str>| {
        let all = mesh.context.ledger.all_counters();
        let of = all.into_iter().find(|(_, of, _)| of.as_deref() == consumer).unwrap();
        of.2.opened
    };
    assert_eq!(read_exact(&mut adapter.connect().await, 2).await, b"hi");
    until("it is counted", || opened(Some("fleet")) == 1).await;
    assert_eq!(opened(None), 0, "the frontend saw nobody");

    mesh.frontend().set_backend(local(greeter("yo").await));
    assert_eq!(read_exact(&mut adapter.connect().await, 2).await, b"yo");
    mesh.frontend().set_backend(Backend::None("its producer is away".into()));
    read_all(&mut adapter.connect().await).await.unwrap();
    until("it is refused for want of a backend", || mesh.counters().refused_no_backend == 1).await;
    for listener in [adapter.addr, mesh.addr] {
        let before = mesh.counters().refused_loop;
        mesh.frontend().set_backend(local(listener));
        read_all(&mut adapter.connect().await).await.unwrap();
        until("the loop is refused", || mesh.counters().refused_loop == before + 1).await;
    }
}
