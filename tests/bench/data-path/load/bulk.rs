//! As many bytes as go through, up or down, on one stream and on sixteen.
use super::watch;
use crate::lines::{Line, Results};
use crate::peers::{Proxy, User};
use crate::servers::{Servers, drain, source};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub fn measure(proxy: &Proxy, servers: &Servers, window: Duration, results: &mut Results) {
    let user = proxy.user == User::Nobody;
    for streams in [1, 16] {
        for down in [false, true] {
            let counter = if down { Arc::default() } else { Arc::clone(&servers.arrived) };
            let counted = run(proxy, &counter, down, streams, window);
            let gib = f64::from(1 << 30);
            results.add(Line::Bulk { down, streams, user }, proxy.subject, counted.per_second() / gib);
            if let Some(each) = counted.cpu_each() {
                results.add(Line::BulkCpu { down, streams, user }, proxy.subject, each * gib);
            }
        }
    }
}

fn run(proxy: &Proxy, counter: &Arc<AtomicU64>, down: bool, streams: usize, window: Duration) -> super::Counted {
    let address = if down { proxy.source } else { proxy.sink };
    let open: Vec<TcpStream> = (0..streams).map(|_| TcpStream::connect(address).unwrap()).collect();
    let workers: Vec<_> = open
        .iter()
        .map(|stream| {
            let (mut stream, counter) = (stream.try_clone().unwrap(), Arc::clone(counter));
            std::thread::spawn(move || if down { drain(&mut stream, &counter) } else { source(stream) })
        })
        .collect();
    let counted = watch(proxy, window, || counter.load(Ordering::Relaxed));
    for stream in open {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for worker in workers {
        worker.join().unwrap();
    }
    counted
}
