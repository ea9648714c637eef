//! The fleet of the tests of relays: two hosts with services, and a desk with adapters to them.
use crate::support::fleet::Fleet;
use crate::support::home::STADO;
use crate::support::tcp::{ask, serve};
use crate::support::{PATIENCE, wait_until};
use serde_json::json;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

pub const DATA: usize = 1;
pub const OTHER: usize = 2;
pub const DESK: usize = 3;

pub struct Scene {
    pub fleet: Fleet,
    pub orders: u16,
    pub notes: u16,
    pub sink: u16,
}

/// `orders` (an echo) and `sink` (reads all, says nothing) on `data`, `notes` (an echo) on `other`; adapters on the desk.
pub fn scene(multiplex: bool) -> Scene {
    on(Fleet::on_networks(&["authority", "data", "other", "desk"]), multiplex)
}

pub fn on(mut fleet: Fleet, multiplex: bool) -> Scene {
    if multiplex {
        fleet.declare("data", "stado_command", json!(STADO));
        fleet.declare("other", "stado_command", json!(STADO));
    }
    let bind = |host: usize, fleet: &Fleet| {
        let listener = inside(fleet, host, || TcpListener::bind("127.0.0.1:0").unwrap());
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    };
    let (listener, orders) = bind(DATA, &fleet);
    serve(listener, "orders");
    let (listener, notes) = bind(OTHER, &fleet);
    serve(listener, "notes");
    let (listener, sink) = bind(DATA, &fleet);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
        }
    });
    fleet.service("orders", "data", "tcp", orders, "shop");
    fleet.service("notes", "other", "tcp", notes, "shop");
    fleet.service("sink", "data", "tcp", sink, "shop");
    let [orders, notes, sink] = ["orders", "notes", "sink"].map(|name| fleet.adapter("desk", name, "shop"));
    fleet.up();
    Scene { fleet, orders, notes, sink }
}

/// On the network of a host, if it has one of its own.
pub fn inside<T: Send>(fleet: &Fleet, host: usize, work: impl FnOnce() -> T + Send) -> T {
    match &fleet.network {
        Some(network) => network.inside(host, work),
        None => work(),
    }
}

impl Scene {
    /// Asks from the desk's network.
    pub fn asks(&self, port: u16, line: &str) -> Option<String> {
        inside(&self.fleet, DESK, || ask(("127.0.0.1", port), line))
    }

    pub fn connect(&self, port: u16) -> TcpStream {
        let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
        inside(&self.fleet, DESK, connect)
    }

    /// `port` answers again.
    pub fn comes_back(&self, port: u16, word: &str) {
        wait_until("it answers again", 2 * PATIENCE, || self.asks(port, "x").as_deref() == Some(&format!("{word}:x")));
    }
}

/// An upload that runs until it fails; how many bytes went, and the thread.
pub fn upload(mut stream: TcpStream, went: &Arc<AtomicU64>) -> thread::JoinHandle<Instant> {
    let went = Arc::clone(went);
    thread::spawn(move || {
        let piece = vec![7; 64 * 1024];
        while let Ok(n) = stream.write(&piece) {
            went.fetch_add(n as u64, Relaxed);
        }
        Instant::now()
    })
}
