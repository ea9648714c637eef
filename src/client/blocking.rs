//! The same library for programs without an async runtime: a thread of its own drives it.
//!
//! ```no_run
//! use stado::client::{RegistrationOptions, blocking};
//! let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! let backend = listener.local_addr()?.to_string();
//! let handle = blocking::register(RegistrationOptions::new("checkout.api", backend))?;
//! println!("others reach this program at {}", handle.endpoint());
//! handle.close();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
use super::error::Error;
use super::handle::{RegistrationInfo, State};
use super::options::RegistrationOptions;
use stado_fleet::wire::{Health, Inspect, Service};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

/// A thread that drives a runtime of its own until it is dropped.
struct Driver {
    runtime: tokio::runtime::Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Driver {
    fn start() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("stado-client".into()).spawn(move || {
            let _ = runtime.block_on(ended);
        })?;
        Ok(Self { runtime: handle, end: Some(end), thread: Some(thread) })
    }

    /// Refused inside a runtime, which blocking would stall.
    fn run<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        if tokio::runtime::Handle::try_current().is_ok() {
            return Err(Error::Invalid(
                "the blocking client was called from async code; use stado::client itself there".into(),
            ));
        }
        self.runtime.block_on(work)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// [`super::Api`], blocking.
pub struct Api {
    api: super::Api,
    driver: Driver,
}

impl Api {
    /// The daemon at a socket; fails when no thread can be started.
    pub fn new(socket: impl Into<PathBuf>) -> Result<Self, Error> {
        Ok(Self { api: super::Api::new(socket), driver: Driver::start()? })
    }

    /// The daemon's health.
    pub fn health(&self) -> Result<Health, Error> {
        self.driver.run(self.api.health())
    }

    /// Every known service, sorted by name.
    pub fn list(&self) -> Result<Vec<Service>, Error> {
        self.driver.run(self.api.list())
    }

    /// One service.
    pub fn resolve(&self, name: &str) -> Result<Service, Error> {
        self.driver.run(self.api.resolve(name))
    }

    /// One service with its backend and producer.
    pub fn inspect(&self, name: &str) -> Result<Inspect, Error> {
        self.driver.run(self.api.inspect(name))
    }
}

/// [`super::Handle`], blocking. Dropping it ends the heartbeats.
pub struct Handle {
    handle: super::Handle,
    driver: Driver,
}

/// [`super::register`], blocking.
pub fn register(options: RegistrationOptions) -> Result<Handle, Error> {
    let driver = Driver::start()?;
    let handle = driver.run(super::register(options))?;
    Ok(Handle { handle, driver })
}

impl Handle {
    /// The stable address that others use.
    pub fn endpoint(&self) -> String {
        self.handle.endpoint()
    }

    /// The registration as it stands.
    pub fn info(&self) -> RegistrationInfo {
        self.handle.info()
    }

    /// How the registration stands.
    pub fn state(&self) -> State {
        self.handle.state()
    }

    /// Changes to wait for on this thread.
    pub fn changes(&self) -> Changes<'_> {
        Changes { receiver: self.handle.changes(), driver: &self.driver }
    }

    /// Ends the heartbeats and deletes the registration; bounded like [`super::Handle::close`].
    pub fn close(self) {
        let _ = self.driver.run(async {
            self.handle.close().await;
            Ok(())
        });
    }
}

/// State changes of a registration, from the moment it was asked for.
pub struct Changes<'a> {
    receiver: watch::Receiver<State>,
    driver: &'a Driver,
}

impl Changes<'_> {
    /// The state after the next change; `None` when nothing changes within `limit`.
    pub fn next(&mut self, limit: Duration) -> Option<State> {
        let receiver = &mut self.receiver;
        let changed = self.driver.run(async { Ok(timeout(limit, receiver.changed()).await) });
        matches!(changed, Ok(Ok(Ok(())))).then(|| receiver.borrow_and_update().clone())
    }
}

/// A bound `std` listener and its registration.
pub struct Listener {
    listener: TcpListener,
    registration: Handle,
}

/// [`super::listen_tcp`], blocking.
pub fn listen_tcp(name: &str, preferred_port: Option<u16>) -> Result<Listener, Error> {
    listen(RegistrationOptions { preferred_port, ..RegistrationOptions::new(name, "") })
}

/// [`super::listen`], blocking.
pub fn listen(mut options: RegistrationOptions) -> Result<Listener, Error> {
    let address = if options.backend.is_empty() { "127.0.0.1:0" } else { &options.backend };
    let listener = TcpListener::bind(address)?;
    options.backend = listener.local_addr()?.to_string();
    Ok(Listener { listener, registration: register(options)? })
}

impl Listener {
    /// The listener, for `accept` and `incoming`.
    pub fn listener(&self) -> &TcpListener {
        &self.listener
    }

    /// The next client.
    pub fn accept(&self) -> Result<(TcpStream, std::net::SocketAddr), Error> {
        Ok(self.listener.accept()?)
    }

    /// The registration.
    pub fn registration(&self) -> &Handle {
        &self.registration
    }

    /// Closes the listener, then the registration.
    pub fn close(self) {
        drop(self.listener);
        self.registration.close();
    }
}
