//! Bytes of version 1 of the relay, as its far end sent them: an end of today understands them. (What the near end sent is in
//! `tests/it/relay_story.rs`.)
use super::carrier::program;
use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// SETTINGS (most streams 4096, window 1 MiB, frames of 32,759 bytes, header list 16 MiB), and the connection's window.
const BEGIN: &[u8] = b"\x00\x00\x18\x04\x00\x00\x00\x00\x00\
    \x00\x03\x00\x00\x10\x00\x00\x04\x00\x10\x00\x00\x00\x05\x00\x00\x7f\xf7\x00\x06\x01\x00\x00\x00\
    \x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\x00\x00";
/// The answer to SETTINGS.
const ACKNOWLEDGED: &[u8] = b"\x00\x00\x00\x04\x01\x00\x00\x00\x00";
/// HEADERS of stream 1: 200.
const OPENED: &[u8] = b"\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88";
/// DATA of stream 1, and its end.
const SAID: &[u8] = b"\x00\x00\x05\x00\x00\x00\x00\x00\x01hello\x00\x00\x00\x00\x01\x00\x00\x00\x01";
/// HEADERS of stream 1 and its end: 403, code and sentence as literals.
const REFUSED: &[u8] = b"\x00\x00\x39\x01\x05\x00\x00\x00\x01\x08\x03403\
    \x00\x0dstado-refusal\x09forbidden\x00\x0estado-sentence\x0anot for me";
/// RST_STREAM of stream 1: CONNECT_ERROR.
const RESET: &[u8] = b"\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x0a";

/// A far end that plays the record: `after` follows the CONNECT.
async fn far(sshd: &Sshd, greeting: &'static str, after: &'static [&'static [u8]]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(play(stream, greeting, after));
        }
    });
    program(sshd, &format!("exec 3<>/dev/tcp/127.0.0.1/{port}\ncat <&3 & exec cat >&3"))
}

async fn play(mut stream: TcpStream, greeting: &'static str, after: &'static [&'static [u8]]) {
    stream.write_all(greeting.as_bytes()).await.unwrap();
    let mut preface = vec![0; b"stado-relay 1\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len()];
    stream.read_exact(&mut preface).await.unwrap();
    assert!(preface.starts_with(b"stado-relay 1\n"), "the older version is spoken");
    stream.write_all(BEGIN).await.unwrap();
    let mut settings = false;
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        stream.read_exact(&mut vec![0; length as usize]).await.unwrap();
        match (head[3], head[4]) {
            (4, 0) if !settings => {
                settings = true;
                stream.write_all(ACKNOWLEDGED).await.unwrap();
            }
            (1, _) => {
                for frame in after {
                    stream.write_all(frame).await.unwrap();
                }
            }
            _ => {}
        }
    }
}

async fn open(link: &Link, sshd: &Sshd, command: &str) -> Result<Pin<Box<dyn RemoteStream>>, LinkError> {
    let endpoint = "127.0.0.1:9".parse().unwrap();
    let opened = link.relay(&host(), &sshd.paths(), Some(command), endpoint, SHORT).await;
    assert_eq!(link.roads().first().map(|road| road.carrier), Some("multiplex"));
    opened
}

#[tokio::test]
async fn a_far_end_of_version_1_opens_speaks_and_ends() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let command = far(&sshd, "stado-relay 1\n", &[OPENED, SAID]).await;
    let (link, mut said) = (sshd.link(), Vec::new());
    open(&link, &sshd, &command).await.unwrap().read_to_end(&mut said).await.unwrap();
    assert_eq!(said, b"hello");
}

#[tokio::test]
async fn a_far_end_of_version_1_refuses_in_its_words_and_resets() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let command = far(&sshd, "stado-relay 1\n", &[REFUSED]).await;
    let link = sshd.link();
    let error = open(&link, &sshd, &command).await.err().unwrap();
    assert_eq!((error.stage, error.class), (Stage::Open, crate::fault::Class::Refused));
    assert!(error.sentence.contains("administratively prohibited: not for me"), "{error}");
    let command = far(&sshd, "stado-relay 1\n", &[OPENED, RESET]).await;
    let link = sshd.link();
    let error = open(&link, &sshd, &command).await.unwrap().read(&mut [0; 1]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn with_a_far_end_of_tomorrow_the_version_of_today_is_spoken() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let command = far(&sshd, "stado-relay 7 colour=blue\n", &[OPENED, SAID]).await;
    let (link, mut said) = (sshd.link(), Vec::new());
    open(&link, &sshd, &command).await.unwrap().read_to_end(&mut said).await.unwrap();
    assert_eq!(said, b"hello");
}
