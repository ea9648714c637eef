use super::*;
use crate::mesh::rig::Home;

#[tokio::test]
async fn an_adapter_keeps_its_port_and_no_service_gets_it() {
    let home = Home::new();
    let path = home.dir.path().join("adapter-ports.json");
    let mesh = home.start();
    let ports = AdapterPorts::open(&path, mesh.allocator()).unwrap();
    let first = ports.allocate("db/web").await.unwrap();
    let port = first.addr.port();
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        format!("{{\n  \"version\": 1,\n  \"ports\": {{\n    \"db/web\": {port}\n  }}\n}}")
    );
    drop(first);
    let mut wish = crate::mesh::rig::request("x", 9);
    wish.preferred_port = port.into();
    let answer = mesh.register(wish, None).await.unwrap();
    assert_ne!(answer.frontend.port, port, "an unbound adapter port stays reserved");
    let again = AdapterPorts::open(&path, mesh.allocator()).unwrap();
    assert_eq!(again.allocate("db/web").await.unwrap().addr.port(), port);
    again.forget("db/web").await.unwrap();
    assert_eq!((again.remembered("db/web"), mesh.allocator().holder(port)), (None, None));
}
