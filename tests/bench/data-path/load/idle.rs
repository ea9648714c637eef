//! Connections that have carried one message and say nothing more.
use crate::lines::{Line, Results};
use crate::peers::{Proxy, Subject};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// socat has a process for every connection: a few show what they cost.
const FEW: usize = 100;

pub fn measure(proxy: &Proxy, connections: usize, results: &mut Results) {
    let Some(tree) = &proxy.tree else { return };
    let connections = if proxy.subject == Subject::Socat { connections.min(FEW) } else { connections };
    // One of each first: what is made once is not a connection's.
    let warm = [connect(proxy, 0), connect(proxy, 1)];
    std::thread::sleep(Duration::from_millis(300));
    let (memory, descriptors) = (tree.memory(), tree.descriptors());
    let open: Vec<TcpStream> = (0..connections).map(|n| connect(proxy, n)).collect();
    std::thread::sleep(Duration::from_millis(1500));
    let each = |more: f64| more / connections as f64;
    let more = tree.memory().saturating_sub(memory) as f64;
    results.add(Line::IdleMemory, proxy.subject, each(more) / 1024.0);
    results.add(Line::IdleDescriptors, proxy.subject, each((tree.descriptors() - descriptors) as f64));
    drop((open, warm));
}

fn connect(proxy: &Proxy, n: usize) -> TcpStream {
    let mut stream = TcpStream::connect(proxy.echoes[n % 2]).unwrap();
    let mut message = [7u8; 64];
    stream.write_all(&message).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.read_exact(&mut message).unwrap();
    stream
}
