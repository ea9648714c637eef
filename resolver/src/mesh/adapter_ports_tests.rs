use super::*;
use crate::mesh::rig::Home;

#[tokio::test]
async fn an_adapter_keeps_its_port_and_no_service_gets_it() {
    let home = Home::new();
    let path = home.dir.path().join("adapter-ports.json");
    let mesh = home.start();
    let ports = AdapterPorts::open(&path, mesh.allocator());
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
    let again = AdapterPorts::open(&path, mesh.allocator());
    assert_eq!(again.allocate("db/web").await.unwrap().addr.port(), port);
    assert_eq!(again.warning(), None);
    again.forget("db/web").await.unwrap();
    assert_eq!((again.remembered("db/web"), mesh.allocator().holder(port)), (None, None));
}

/// What is in the way, the daemon's own words of it, and the file's place.
async fn in_the_way(put: impl FnOnce(&std::path::Path)) -> (AdapterPorts, std::path::PathBuf, Home) {
    let home = Home::new();
    let path = home.dir.path().join("adapter-ports.json");
    put(&path);
    let mesh = home.start();
    (AdapterPorts::open(&path, mesh.allocator()), path, home)
}

fn set_aside(path: &std::path::Path) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|other| other.to_str().unwrap().contains("adapter-ports.json.corrupt.")).collect()
}

#[tokio::test]
async fn a_file_that_is_torn_or_none_at_all_is_set_aside_said_and_stops_no_adapter() {
    for directory in [false, true] {
        let (ports, path, _home) = in_the_way(|path| match directory {
            true => std::fs::create_dir(path).unwrap(),
            false => std::fs::write(path, "{\"version\":1,\"ports\":{\"db/web\":").unwrap(),
        })
        .await;
        let aside = set_aside(&path);
        assert_eq!(aside.len(), 1, "{aside:?}");
        assert_eq!(aside[0].is_dir(), directory);
        let warning = ports.warning().unwrap();
        assert!(warning.contains(&format!("set aside as {}", aside[0].display())), "{warning}");
        let port = ports.allocate("db/web").await.unwrap().addr.port();
        assert!(std::fs::read_to_string(&path).unwrap().contains(&port.to_string()));
    }
}

#[tokio::test]
async fn a_newer_daemons_file_is_left_alone_and_its_adapters_get_their_ports_once_it_is_readable() {
    let newer = r#"{"version":2,"ports":{"db/web":1}}"#;
    let (ports, path, _home) = in_the_way(|path| std::fs::write(path, newer).unwrap()).await;
    let refused = ports.allocate("db/web").await.unwrap_err().to_string();
    assert!(refused.contains("unsupported version 2") && refused.contains("move that file away"), "{refused}");
    assert_eq!((ports.remembered("db/web"), ports.warning()), (None, None));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
    std::fs::rename(&path, path.with_extension("kept")).unwrap();
    let port = ports.allocate("db/web").await.unwrap().addr.port();
    assert_eq!(ports.remembered("db/web"), Some(port));
    assert!(set_aside(&path).is_empty());
}
