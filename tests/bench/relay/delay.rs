//! A TCP proxy that delays every byte, for kernels that have no netem. What is on its way is bounded as a network with
//! large buffers would bound it, so that the windows above decide the rate.
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Pieces that are on their way in one direction, at most.
const PIECES: usize = 512;
const PIECE: usize = 128 * 1024;

/// Where connections to `to` are taken; each direction takes `each_way` longer.
pub fn start(to: SocketAddr, each_way: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let Ok(far) = TcpStream::connect(to) else { continue };
            for stream in [&near, &far] {
                stream.set_nodelay(true).unwrap();
            }
            carry(near.try_clone().unwrap(), far.try_clone().unwrap(), each_way);
            carry(far, near, each_way);
        }
    });
    at
}

fn carry(from: TcpStream, to: TcpStream, delay: Duration) {
    let (tell, hear) = sync_channel(PIECES);
    thread::spawn(move || take(from, &tell, delay));
    thread::spawn(move || give(to, &hear));
}

fn take(mut from: TcpStream, tell: &SyncSender<(Instant, Vec<u8>)>, delay: Duration) {
    let mut piece = vec![0; PIECE];
    while let Ok(n) = from.read(&mut piece) {
        // An empty piece is the end.
        if tell.send((Instant::now() + delay, piece[..n].to_vec())).is_err() || n == 0 {
            return;
        }
    }
}

fn give(mut to: TcpStream, hear: &Receiver<(Instant, Vec<u8>)>) {
    while let Ok((due, piece)) = hear.recv() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if piece.is_empty() || to.write_all(&piece).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
