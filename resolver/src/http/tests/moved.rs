//! A service that moves to another host while its requests come.
use super::support::*;
use crate::conn::{Backend, Dialer, Opening};
use stado_fleet::directory::Route;
use stado_fleet::fault::Class;
use stado_fleet::link::{LinkError, RemoteStream, Stage};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The host `left` lets nobody in any more; on `now` the service answers.
#[derive(Debug, Default)]
struct Hosts {
    refused: AtomicUsize,
}

impl Dialer for Hosts {
    fn open<'a>(&'a self, route: &'a Route, _: std::time::Duration) -> Opening<'a> {
        Box::pin(async move {
            if route.active_host.as_str() == "left" {
                self.refused.fetch_add(1, Ordering::SeqCst);
                let sentence = "the directory places it elsewhere".to_owned();
                return Err(LinkError { stage: Stage::Open, class: Class::Refused, sentence });
            }
            let (ours, mut theirs) = tokio::io::duplex(1 << 12);
            tokio::spawn(async move {
                let _ = theirs.read(&mut [0; 1024]).await;
                let _ = theirs.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere").await;
                // Until the router lets it go.
                let _ = theirs.read(&mut [0; 1]).await;
            });
            Ok(Box::pin(ours) as Pin<Box<dyn RemoteStream>>)
        })
    }
}

fn on(host: &str) -> Backend {
    Backend::Fleet(Arc::new(Route {
        service: "a.test".parse().unwrap(),
        active_host: host.parse().unwrap(),
        endpoint: "http://127.0.0.1:8080".parse().unwrap(),
        capabilities: Vec::new(),
        paths: [].into(),
        local: false,
        stado_command: None,
    }))
}

#[tokio::test]
async fn a_request_to_the_host_that_was_left_is_led_to_where_the_service_is_now() {
    let hosts = Arc::new(Hosts::default());
    let rig = Rig::of_a_fleet(hosts.clone()).await;
    rig.route(&[("a.test", on("left"))]);
    let mut client = rig.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    until("the host that was left has refused", || hosts.refused.load(Ordering::SeqCst) == 1).await;
    rig.route(&[("a.test", on("now"))]);
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("here"), "{answer}");
    assert_eq!(hosts.refused.load(Ordering::SeqCst), 1);
}
