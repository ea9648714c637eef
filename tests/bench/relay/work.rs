//! What is measured.
use crate::service::{ECHO, SINK, SOURCE};
use crate::way::Way;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

pub struct Work {
    pub name: &'static str,
    pub unit: &'static str,
    /// Only the first round counts: memory that has grown once stays.
    pub once: bool,
    pub run: fn(&Way, usize) -> Option<f64>,
}

pub const ALL: [Work; 10] = [
    Work { name: "upload, one stream", unit: "MiB/s", once: false, run: |way, mib| Some(rate(way, 1, mib, up)) },
    Work { name: "download, one stream", unit: "MiB/s", once: false, run: |way, mib| Some(rate(way, 1, mib, down)) },
    Work { name: "upload, eight streams", unit: "MiB/s", once: false, run: |way, mib| Some(rate(way, 8, mib / 8, up)) },
    Work {
        name: "download, eight streams",
        unit: "MiB/s",
        once: false,
        run: |way, mib| Some(rate(way, 8, mib / 8, down)),
    },
    Work { name: "64-byte round trip alone", unit: "µs", once: false, run: |way, _| Some(1e6 / echoes(way, 1, 3000)) },
    Work {
        name: "64-byte round trips on sixteen streams",
        unit: "per second",
        once: false,
        run: |way, _| Some(echoes(way, 16, 1000)),
    },
    Work {
        name: "opens, with one byte there and back",
        unit: "per second",
        once: false,
        run: |way, _| Some(opens(way, 400)),
    },
    Work { name: "memory of 1,000 idle streams, client side", unit: "MiB", once: true, run: |way, _| idle(way, 1000) },
    Work { name: "client CPU, upload", unit: "s/GiB", once: false, run: |way, mib| Some(cpu_of(way, mib, up)) },
    Work { name: "client CPU, download", unit: "s/GiB", once: false, run: |way, mib| Some(cpu_of(way, mib, down)) },
];

fn connect(way: &Way, kind: u8) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", way.port)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(&[kind]).unwrap();
    stream
}

fn up(way: &Way, bytes: u64) {
    let mut stream = connect(way, SINK);
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
fn rate(way: &Way, streams: usize, mib: usize, work: fn(&Way, u64)) -> f64 {
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..streams {
            scope.spawn(|| work(way, (mib as u64) << 20));
        }
    });
    (streams * mib) as f64 / began.elapsed().as_secs_f64()
}

/// Round trips per second over all streams.
fn echoes(way: &Way, streams: usize, each: usize) -> f64 {
    let mut open: Vec<_> = (0..streams).map(|_| connect(way, ECHO)).collect();
    open.iter_mut().for_each(echo);
    let began = Instant::now();
    thread::scope(|scope| {
        for stream in &mut open {
            scope.spawn(move || (0..each).for_each(|_| echo(stream)));
        }
    });
    (streams * each) as f64 / began.elapsed().as_secs_f64()
}

fn echo(stream: &mut TcpStream) {
    let mut back = [0; 64];
    stream.write_all(&[5; 64]).unwrap();
    stream.read_exact(&mut back).unwrap();
}

fn opens(way: &Way, count: usize) -> f64 {
    let began = Instant::now();
    for _ in 0..count {
        let mut stream = connect(way, ECHO);
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
    }
    count as f64 / began.elapsed().as_secs_f64()
}

/// What the client's side grows by.
fn idle(way: &Way, count: usize) -> Option<f64> {
    thread::sleep(Duration::from_millis(500));
    let before = resident(way.pid);
    let mut open: Vec<_> = (0..count).map(|_| connect(way, ECHO)).collect();
    for stream in &mut open {
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
    }
    Some((resident(way.pid) - before) / 1024.0)
}

/// Resident KiB.
fn resident(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Seconds of processor time per GiB.
fn cpu_of(way: &Way, mib: usize, work: fn(&Way, u64)) -> f64 {
    let before = cpu(way.pid);
    work(way, (mib as u64) << 20);
    (cpu(way.pid) - before) * 1024.0 / mib as f64
}

/// Seconds of user and system time; the kernel counts in hundredths.
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}
