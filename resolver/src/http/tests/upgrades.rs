//! Rules 13 and 17: a connection that becomes another protocol's.
use super::support::*;
use tokio::io::AsyncWriteExt;

const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";

#[tokio::test]
async fn bytes_that_came_with_the_handshake_arrive_once_and_in_order() {
    let rig = Rig::new().await;
    let mut client = rig.send(format!("{UPGRADE}early")).await;
    let mut backend = rig.accept().await;
    let head = read_head(&mut backend).await;
    assert!(head.contains("Upgrade: websocket\r\n") && head.contains("Connection: Upgrade\r\n"), "{head}");
    assert!(is_silent(&mut backend).await, "bytes behind the request are the backend's only after its 101");
    write(&mut backend, format!("{SWITCH}greeting")).await;
    assert_eq!(read_head(&mut client).await, SWITCH);
    assert_eq!(read_exact(&mut client, 8).await, "greeting");
    assert_eq!(read_exact(&mut backend, 5).await, "early");
    for n in 0..3 {
        write(&mut client, format!("ping{n}")).await;
        assert_eq!(read_exact(&mut backend, 5).await, format!("ping{n}"));
        write(&mut backend, format!("pong{n}")).await;
        assert_eq!(read_exact(&mut client, 5).await, format!("pong{n}"));
    }
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut backend).await.unwrap(), b"");
    write(&mut backend, "last words").await;
    drop(backend);
    assert_eq!(text(read_all(&mut client).await.unwrap()), "last words");
}

#[tokio::test]
async fn a_refused_upgrade_leaves_an_ordinary_connection() {
    let rig = Rig::new().await;
    let mut client = rig.send(format!("{UPGRADE}{GET}")).await;
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    write(&mut backend, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno").await;
    read_head(&mut client).await;
    assert_eq!(read_exact(&mut client, 2).await, "no");
    assert!(read_head(&mut backend).await.starts_with("GET / HTTP/1.1\r\n"));
    write(&mut backend, OK).await;
    assert_eq!(read_exact(&mut client, OK.len()).await, OK);
}

#[tokio::test]
async fn resets_pass_through_an_upgraded_connection_both_ways() {
    for from_client in [true, false] {
        let rig = Rig::new().await;
        let mut client = rig.send(UPGRADE).await;
        let mut backend = rig.accept().await;
        read_head(&mut backend).await;
        write(&mut backend, SWITCH).await;
        read_head(&mut client).await;
        if from_client {
            reset(client);
            expect_reset(&mut backend).await;
        } else {
            reset(backend);
            expect_reset(&mut client).await;
        }
    }
}

#[tokio::test]
async fn an_upgraded_connection_outlives_its_registration() {
    let rig = Rig::new().await;
    let mut client = rig.send(UPGRADE).await;
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    write(&mut backend, SWITCH).await;
    read_head(&mut client).await;
    rig.route(&[]);
    write(&mut client, "still").await;
    assert_eq!(read_exact(&mut backend, 5).await, "still");
    assert_eq!(rig.counters().active, 1);
}
