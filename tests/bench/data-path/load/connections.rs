//! Connections that are opened, carry one message there and back, and are closed by the client.
use super::watch;
use crate::lines::{Line, Results};
use crate::peers::Proxy;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const AT_ONCE: usize = 16;

pub fn measure(proxy: &Proxy, window: Duration, results: &mut Results) {
    let (made, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (address, counter, ending) = (proxy.echoes[1], Arc::clone(&made), Arc::clone(&stop));
    let client = std::thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..AT_ONCE {
                tasks.spawn(connect(address, Arc::clone(&counter), Arc::clone(&ending)));
            }
            tasks.join_all().await;
        });
    });
    let counted = watch(proxy, window, || made.load(Ordering::Relaxed));
    stop.store(true, Ordering::Relaxed);
    client.join().unwrap();
    results.add(Line::Connections, proxy.subject, counted.per_second() / 1e3);
    if let Some(each) = counted.cpu_each() {
        results.add(Line::ConnectionsCpu, proxy.subject, each * 1e6);
    }
}

async fn connect(address: SocketAddr, counter: Arc<AtomicU64>, stop: Arc<AtomicBool>) {
    let mut message = [7u8; 64];
    while !stop.load(Ordering::Relaxed) {
        // A system that is out of ports for a moment is not the proxy's failure.
        let Ok(mut stream) = TcpStream::connect(address).await else { continue };
        let _ = stream.set_nodelay(true);
        if stream.write_all(&message).await.is_ok() && stream.read_exact(&mut message).await.is_ok() {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}
