//! What is done all the time, to a host with faults and to one without.
use crate::service::{ECHO, RESET, SINK, SOURCE};
use std::fmt;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// How often each thing was done, and what must not have happened.
#[derive(Default)]
pub struct Tally {
    pub faults: AtomicU64,
    pub moves: AtomicU64,
    pub wrong: AtomicU64,
    done: [AtomicU64; 6],
    /// Streams that a fault of their host cut.
    cut: AtomicU64,
    fault: Mutex<(bool, Option<Instant>)>,
}

impl Tally {
    /// A fault of the data host begins or is over.
    pub fn fault(&self, begins: bool) {
        *self.fault.lock().unwrap() = (begins, Some(Instant::now()));
    }

    /// Whether a fault may have cut what began then.
    fn excuses(&self, began: Instant) -> bool {
        let (now, last) = *self.fault.lock().unwrap();
        now || last.is_some_and(|last| last > began)
    }

    pub fn wrong(&self, what: &str) {
        self.wrong.fetch_add(1, Relaxed);
        eprintln!("WRONG: {what}");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (work, done) in WORK.iter().zip(&self.done) {
            write!(f, "{} {}, ", done.load(Relaxed), work.0)?;
        }
        let n = |counter: &AtomicU64| counter.load(Relaxed);
        write!(f, "{} moves, {} faults, {} streams cut by one", n(&self.moves), n(&self.faults), n(&self.cut))
    }
}

type Work = fn(u16, u64) -> Result<()>;

const WORK: [(&str, Work); 6] = [
    ("short connections", trip),
    ("half-closes", half_close),
    ("× 4 MiB", bulk),
    ("resets by clients", reset_by_client),
    ("resets by services", reset_by_service),
    ("long streams", long_stream),
];

pub struct Churn {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Churn {
    /// `faulty` may be cut by a fault, `sound` never.
    pub fn start(faulty: u16, sound: u16, tally: &Arc<Tally>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for (port, excusable) in [(faulty, true), (sound, false)] {
            for which in 0..WORK.len() {
                let (tally, stop) = (tally.clone(), stop.clone());
                threads.push(thread::spawn(move || repeat(which, port, excusable, &tally, &stop)));
            }
        }
        Self { stop, threads }
    }

    pub fn stop(self) {
        self.stop.store(true, Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

fn repeat(which: usize, port: u16, excusable: bool, tally: &Tally, stop: &AtomicBool) {
    let (name, work) = WORK[which];
    let mut turn = 0;
    while !stop.load(Relaxed) {
        turn += 1;
        let began = Instant::now();
        match work(port, turn) {
            Ok(()) => {
                tally.done[which].fetch_add(1, Relaxed);
            }
            // A wrong answer has no excuse.
            Err(error) if error.kind() != ErrorKind::InvalidData && excusable && tally.excuses(began) => {
                tally.cut.fetch_add(1, Relaxed);
                sleep(Duration::from_millis(200));
            }
            Err(error) => tally.wrong(&format!("{name}: {error}, after {:?}", began.elapsed())),
        }
        sleep(Duration::from_millis(5));
    }
}

fn connect(port: u16, kind: u8) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(40)))?;
    stream.set_write_timeout(Some(Duration::from_secs(40)))?;
    stream.write_all(&[kind])?;
    Ok(stream)
}

fn wrong(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

fn trip(port: u16, turn: u64) -> Result<()> {
    let mut stream = connect(port, ECHO)?;
    let sent: Vec<u8> = (0..1_usize << (turn % 13)).map(|n| (n as u64 * turn) as u8).collect();
    let mut back = vec![0; sent.len()];
    stream.write_all(&sent)?;
    stream.read_exact(&mut back)?;
    if back == sent { Ok(()) } else { Err(wrong("other bytes came back".into())) }
}

/// All bytes, then the end, then the answer.
fn half_close(port: u16, turn: u64) -> Result<()> {
    let size = 1000 * (turn % 300);
    let mut stream = connect(port, SINK)?;
    stream.write_all(&vec![3; usize::try_from(size).unwrap()])?;
    stream.shutdown(Shutdown::Write)?;
    let mut total = [0; 8];
    stream.read_exact(&mut total)?;
    let counted = u64::from_be_bytes(total);
    if counted == size { Ok(()) } else { Err(wrong(format!("{counted} of {size} bytes arrived before the end"))) }
}

fn bulk(port: u16, _: u64) -> Result<()> {
    const SIZE: u64 = 4 << 20;
    let mut stream = connect(port, SOURCE)?;
    stream.write_all(&SIZE.to_be_bytes())?;
    let came = std::io::copy(&mut stream, &mut std::io::sink())?;
    sleep(Duration::from_millis(100));
    // Direct-tcpip cannot tell a reset from an end: a short one is an end too early, not a wrong answer.
    if came == SIZE {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::UnexpectedEof, format!("{came} of {SIZE} bytes came")))
    }
}

fn reset_by_client(port: u16, _: u64) -> Result<()> {
    let mut stream = connect(port, ECHO)?;
    stream.write_all(&[1])?;
    stream.read_exact(&mut [0; 1])?;
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
    Ok(())
}

fn reset_by_service(port: u16, _: u64) -> Result<()> {
    let mut stream = connect(port, RESET)?;
    match stream.read(&mut [0; 1]) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
        other => Err(Error::other(format!("a reset arrived as {other:?}"))),
    }
}

fn long_stream(port: u16, _: u64) -> Result<()> {
    let (start, mut stream) = (Instant::now(), connect(port, ECHO)?);
    let mut said = 0_u8;
    while start.elapsed() < Duration::from_secs(25) {
        said = said.wrapping_add(1);
        let mut heard = [0];
        stream.write_all(&[said])?;
        stream.read_exact(&mut heard)?;
        if heard != [said] {
            return Err(wrong(format!("{said} came back as {heard:?}")));
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}
