//! Whether a reset of one end reaches the other as a reset, within a second.
use crate::lines::{Line, Results};
use crate::peers::Proxy;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub fn measure(proxy: &Proxy, results: &mut Results) {
    for by_client in [true, false] {
        let (client, served) = pair(proxy);
        let (resetting, mut other) = if by_client { (client, served) } else { (served, client) };
        socket2::SockRef::from(&resetting).set_linger(Some(Duration::ZERO)).unwrap();
        drop(resetting);
        other.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let reset = other.read(&mut [0; 16]).is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
        let line = if by_client { Line::ResetUp } else { Line::ResetDown };
        results.add(line, proxy.subject, f64::from(u8::from(reset)));
    }
}

/// Both ends of a connection that has carried a byte each way.
fn pair(proxy: &Proxy) -> (TcpStream, TcpStream) {
    let mut client = TcpStream::connect(proxy.by_hand).unwrap();
    client.write_all(b"a").unwrap();
    let (mut served, _) = proxy.server.accept().unwrap();
    let mut byte = [0];
    served.read_exact(&mut byte).unwrap();
    served.write_all(b"b").unwrap();
    client.read_exact(&mut byte).unwrap();
    (client, served)
}
