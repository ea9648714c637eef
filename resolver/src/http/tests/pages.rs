//! Rule 10: what is answered when nothing is reached.
use super::support::*;
use crate::conn::Backend;

#[tokio::test]
async fn an_unreachable_backend_is_502_with_its_address_and_why_and_the_connection_stays() {
    let rig = Rig::new().await;
    let dead = "127.0.0.1:1";
    rig.route(&[("a.test", Backend::Local(dead.parse().unwrap()))]);
    let mut client = rig.send(GET).await;
    let head = read_head(&mut client).await;
    assert!(head.starts_with("HTTP/1.1 502 Bad Gateway\r\n") && !head.contains("Connection: close"), "{head}");
    let length: usize = head.split("Content-Length: ").nth(1).unwrap().split("\r\n").next().unwrap().parse().unwrap();
    let body = read_exact(&mut client, length).await;
    assert!(body.contains(dead) && body.contains("refused"), "{body}");
    write(&mut client, GET).await;
    assert!(read_head(&mut client).await.starts_with("HTTP/1.1 502 "));
    assert_eq!(rig.counters().refused_unreachable, 2);
}

#[tokio::test]
async fn pages_come_as_the_client_likes_them() {
    let rig = Rig::new().await;
    for (accept, kind) in [("text/html", "text/html"), ("application/json", "application/json"), ("*/*", "text/plain")]
    {
        let answer = rig
            .ask(format!("GET / HTTP/1.1\r\nHost: x<y>.test\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"))
            .await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        let answer =
            rig.ask(format!("GET / HTTP/1.1\r\nHost: x.test\r\nAccept: {accept}\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains(&format!("Content-Type: {kind}")), "{answer}");
    }
}

#[tokio::test]
async fn a_call_of_grpc_is_told_in_the_fields_that_its_clients_read() {
    let rig = Rig::new().await;
    rig.route(&[("gone.test", Backend::None("it left".into()))]);
    for (host, kind, code) in [
        ("x.test", "application/grpc", Some("12")),
        ("gone.test", "application/grpc+proto", Some("14")),
        ("x.test", "application/json", None),
    ] {
        let call = format!("POST /a.B/C HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
        let answer = rig.ask(call).await;
        let said = answer.split("grpc-status: ").nth(1).map(|rest| rest.split("\r\n").next().unwrap());
        assert_eq!(said, code, "{answer}");
        assert_eq!(answer.contains("grpc-message: "), code.is_some(), "{answer}");
    }
}

#[tokio::test]
async fn a_page_for_head_has_no_body() {
    let rig = Rig::new().await;
    let answer = rig.ask("HEAD / HTTP/1.1\r\nHost: x.test\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 404 ") && answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_page_is_read_even_while_the_request_is_still_being_sent() {
    let rig = Rig::new().await;
    let mut client = rig.send("POST / HTTP/1.1\r\nHost: x.test\r\nContent-Length: 4000000\r\n\r\n").await;
    let mut body = vec![b'x'; 4_000_000];
    let (mut read, mut wrote) = client.split();
    let send = async {
        // The router may stop reading: the answer counts.
        let _ = tokio::io::AsyncWriteExt::write_all(&mut wrote, &body).await;
    };
    let mut answer = Vec::new();
    let receive = tokio::io::AsyncReadExt::read_to_end(&mut read, &mut answer);
    let (_, got) = tokio::join!(send, receive);
    got.unwrap();
    assert!(text(answer).starts_with("HTTP/1.1 404 "));
    body.clear();
}

#[tokio::test]
async fn a_service_has_so_many_requests_at_a_time_and_no_more() {
    let rig = Rig::with(crate::http::Limits { service_requests: 1, ..Default::default() }).await;
    let (mut client, mut backend, _) = rig.get().await;
    assert!(rig.ask(format!("{}Connection: close\r\n\r\n", &GET[..GET.len() - 2])).await.starts_with("HTTP/1.1 503 "));
    write(&mut backend, OK).await;
    assert_eq!(read_exact(&mut client, OK.len()).await, OK);
    assert_eq!(rig.counters().refused_limit, 1);
    let ended: Vec<_> = rig.context.conn.ledger.recent("a.test").into_iter().map(|recent| recent.outcome).collect();
    assert_eq!(ended, [crate::conn::ledger::Outcome::Done], "who was not let in was no connection");
}

#[tokio::test]
async fn a_backend_that_answers_nonsense_is_502() {
    for nonsense in [
        "garbage\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 101 Sure\r\n\r\n",
    ] {
        let rig = Rig::new().await;
        let (mut client, mut backend, _) = rig.get().await;
        write(&mut backend, nonsense).await;
        let head = read_head(&mut client).await;
        assert!(head.starts_with("HTTP/1.1 502 "), "{nonsense:?}: {head}");
    }
}
