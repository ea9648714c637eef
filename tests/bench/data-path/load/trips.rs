//! Small messages there and back.
use super::watch;
use crate::lines::{Line, Results};
use crate::peers::Proxy;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MESSAGE: usize = 64;
const CONNECTIONS: usize = 64;

pub fn measure(proxy: &Proxy, window: Duration, results: &mut Results) {
    many(proxy, window, results);
    one(proxy, window, results);
}

/// One thread with 64 connections, each with one message on its way.
fn many(proxy: &Proxy, window: Duration, results: &mut Results) {
    let (trips, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (address, counter, ending) = (proxy.echoes[0], Arc::clone(&trips), Arc::clone(&stop));
    let client = std::thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..CONNECTIONS {
                tasks.spawn(ping(address, Arc::clone(&counter), Arc::clone(&ending)));
            }
            tasks.join_all().await;
        });
    });
    let counted = watch(proxy, window, || trips.load(Ordering::Relaxed));
    stop.store(true, Ordering::Relaxed);
    client.join().unwrap();
    results.add(Line::Trips, proxy.subject, counted.per_second() / 1e3);
    if let Some(each) = counted.cpu_each() {
        results.add(Line::TripsCpu, proxy.subject, each * 1e6);
    }
}

async fn ping(address: SocketAddr, counter: Arc<AtomicU64>, stop: Arc<AtomicBool>) {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut message = [7u8; MESSAGE];
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(&message).await.unwrap();
        stream.read_exact(&mut message).await.unwrap();
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// One connection, one message at a time.
fn one(proxy: &Proxy, window: Duration, results: &mut Results) {
    let mut stream = TcpStream::connect(proxy.echoes[0]).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut message = [7u8; MESSAGE];
    let (mut times, start) = (Vec::new(), Instant::now());
    while start.elapsed() < window {
        let sent = Instant::now();
        stream.write_all(&message).unwrap();
        stream.read_exact(&mut message).unwrap();
        times.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    results.add(Line::Median, proxy.subject, times[times.len() / 2]);
    results.add(Line::Ninetynine, proxy.subject, times[times.len() * 99 / 100]);
}
