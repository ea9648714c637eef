//! A cable between two hosts that can be pulled without a word to either end: what is connected stands still, and what
//! connects is taken and never answered.
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Carries connections to one address.
pub struct Cable {
    at: SocketAddr,
    plug: Arc<Plug>,
}

#[derive(Default)]
struct Plug {
    pulled: Mutex<bool>,
    changed: Condvar,
    gone: AtomicBool,
}

impl Cable {
    /// Listens at `at` and carries to `to`.
    pub fn new(at: SocketAddr, to: SocketAddr) -> Self {
        let listener = TcpListener::bind(at).unwrap();
        let at = listener.local_addr().unwrap();
        let plug = Arc::new(Plug::default());
        let carried = plug.clone();
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if carried.gone.load(Ordering::Relaxed) {
                    return;
                }
                let plug = carried.clone();
                thread::spawn(move || {
                    plug.stands_still();
                    let Ok(far) = TcpStream::connect(to) else { return };
                    let (near_too, far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                    let back = plug.clone();
                    thread::spawn(move || carry(far_too, near_too, &back));
                    carry(near, far, &plug);
                });
            }
        });
        Self { at, plug }
    }

    /// Where it is plugged in.
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    pub fn pull(&self) {
        *self.plug.pulled.lock().unwrap() = true;
    }

    pub fn plug_in(&self) {
        *self.plug.pulled.lock().unwrap() = false;
        self.plug.changed.notify_all();
    }
}

impl Plug {
    /// Waits while the cable is pulled.
    fn stands_still(&self) {
        let mut pulled = self.pulled.lock().unwrap();
        while *pulled && !self.gone.load(Ordering::Relaxed) {
            pulled = self.changed.wait(pulled).unwrap();
        }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, plug: &Plug) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        plug.stands_still();
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.plug.gone.store(true, Ordering::Relaxed);
        self.plug_in();
        let _ = TcpStream::connect(self.at);
    }
}
