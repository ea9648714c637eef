//! What is measured.
use crate::lines::Line;
use crate::service::{ECHO, SINK, SOURCE};
use crate::usage::{cpu, resident};
use crate::way::Way;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

type Found = Vec<(Line, f64)>;

pub struct Work {
    pub name: &'static str,
    /// Only the first round counts: memory that has grown once stays.
    pub once: bool,
    pub run: fn(&Way, u64) -> Found,
}

const fn often(name: &'static str, run: fn(&Way, u64) -> Found) -> Work {
    Work { name, once: false, run }
}

/// With the far host on this machine. Memory first, while it has not grown for anything else.
pub const NEAR: &[Work] = &[
    Work { name: "idle streams", once: true, run: |way, _| vec![(Line::Idle, idle(way, 1000))] },
    often("upload, one stream", |way, mib| with_cpu(way, mib, up, Line::Up1, Line::CpuUp)),
    often("download, one stream", |way, mib| with_cpu(way, mib, down, Line::Down1, Line::CpuDown)),
    often("upload, eight streams", |way, mib| vec![(Line::Up8, rate(way, 8, mib / 8, up))]),
    often("download, eight streams", |way, mib| vec![(Line::Down8, rate(way, 8, mib / 8, down))]),
    often("round trips", |way, _| vec![(Line::Trip, 1e6 / echoes(way, 1, 3000))]),
    often("round trips on sixteen streams", |way, _| vec![(Line::Sixteen, echoes(way, 16, 1000))]),
    often("opens", |way, _| vec![(Line::Opens, opens(way, 400))]),
    often("beside a reader that never reads", |way, _| vec![(Line::BesideMute, beside_mute(way))]),
    often("beside a bulk stream", |way, _| vec![(Line::BesideBulk, beside_bulk(way))]),
];

/// With the far host 20 ms away.
pub const FAR: &[Work] = &[
    often("upload, one stream, 20 ms", |way, mib| vec![(Line::FarUp1, rate(way, 1, mib / 2, up))]),
    often("download, one stream, 20 ms", |way, mib| vec![(Line::FarDown1, rate(way, 1, mib / 2, down))]),
    often("upload, eight streams, 20 ms", |way, mib| vec![(Line::FarUp8, rate(way, 8, mib / 16, up))]),
    often("download, eight streams, 20 ms", |way, mib| vec![(Line::FarDown8, rate(way, 8, mib / 16, down))]),
    often("round trips, 20 ms", |way, _| vec![(Line::FarTrip, 1e6 / echoes(way, 1, 20))]),
];

fn connect(way: &Way, kind: u8) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", way.port)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(&[kind]).unwrap();
    stream
}

fn up(way: &Way, bytes: u64) {
    let mut stream = connect(way, SINK);
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let piece = vec![9; 256 * 1024];
    for _ in 0..bytes / piece.len() as u64 {
        stream.write_all(&piece).unwrap();
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let mut total = [0; 8];
    stream.read_exact(&mut total).unwrap();
    assert_eq!(u64::from_be_bytes(total), bytes / piece.len() as u64 * piece.len() as u64, "bytes were lost");
}

fn down(way: &Way, bytes: u64) {
    let mut stream = connect(way, SOURCE);
    stream.write_all(&bytes.to_be_bytes()).unwrap();
    let (mut piece, mut total) = (vec![0; 256 * 1024], 0);
    loop {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            n => total += n as u64,
        }
    }
    assert_eq!(total, bytes, "bytes were lost");
}

/// MiB per second over all streams.
fn rate(way: &Way, streams: u64, mib: u64, work: fn(&Way, u64)) -> f64 {
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..streams {
            scope.spawn(|| work(way, mib << 20));
        }
    });
    (streams * mib) as f64 / began.elapsed().as_secs_f64()
}

/// The rate of one stream, and the seconds of processor time per GiB of the client's side.
fn with_cpu(way: &Way, mib: u64, work: fn(&Way, u64), line: Line, cost: Line) -> Found {
    let before = cpu(way.pid);
    let rate = rate(way, 1, mib, work);
    vec![(line, rate), (cost, (cpu(way.pid) - before) * 1024.0 / mib as f64)]
}

/// Round trips per second over all streams; 0 when one of them stalls.
fn echoes(way: &Way, streams: usize, each: usize) -> f64 {
    let mut open: Vec<_> = (0..streams).map(|_| connect(way, ECHO)).collect();
    // Opening is no part of a round trip.
    if open.iter_mut().any(|stream| echo(stream).is_err()) {
        return 0.0;
    }
    let began = Instant::now();
    let done = thread::scope(|scope| {
        let running: Vec<_> =
            open.iter_mut().map(|stream| scope.spawn(move || (0..each).all(|_| echo(stream).is_ok()))).collect();
        running.into_iter().all(|thread| thread.join().unwrap())
    });
    if done { (streams * each) as f64 / began.elapsed().as_secs_f64() } else { 0.0 }
}

fn echo(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut back = [0; 64];
    stream.write_all(&[5; 64])?;
    stream.read_exact(&mut back)
}

/// Connections per second, one after the other, each with one byte there and back.
fn opens(way: &Way, count: usize) -> f64 {
    let began = Instant::now();
    for _ in 0..count {
        let mut stream = connect(way, ECHO);
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
    }
    count as f64 / began.elapsed().as_secs_f64()
}

/// MiB that the client's side grows by.
fn idle(way: &Way, count: usize) -> f64 {
    let before = resident(way.pid);
    let mut open: Vec<_> = (0..count).map(|_| connect(way, ECHO)).collect();
    for stream in &mut open {
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
    }
    resident(way.pid) - before
}

/// µs of a round trip beside a stream with much to say and nobody who reads it.
fn beside_mute(way: &Way) -> f64 {
    let mut mute = connect(way, SOURCE);
    mute.write_all(&(1_u64 << 30).to_be_bytes()).unwrap();
    // Until all windows on its way are full.
    thread::sleep(Duration::from_millis(300));
    1e6 / echoes(way, 1, 2000)
}

/// µs of a round trip beside a download that never pauses.
fn beside_bulk(way: &Way) -> f64 {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut bulk = connect(way, SOURCE);
            bulk.write_all(&(1_u64 << 40).to_be_bytes()).unwrap();
            let mut piece = vec![0; 256 * 1024];
            let mut more = true;
            while more && !stop.load(Relaxed) {
                more = bulk.read(&mut piece).is_ok_and(|n| n > 0);
            }
        });
        thread::sleep(Duration::from_millis(100));
        let took = 1e6 / echoes(way, 1, 400);
        stop.store(true, Relaxed);
        took
    })
}
