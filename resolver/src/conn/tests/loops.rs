//! Rule 4: this daemon is never a backend of its own.
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
