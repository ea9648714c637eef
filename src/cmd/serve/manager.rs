//! What a service manager is told over `NOTIFY_SOCKET` (`sd_notify`): ready only once everything that can be served is, each
//! reload, the beginning of the end, and at each half of `WATCHDOG_USEC` that the runtime still turns.
use crate::config::Env;
use rustix::time::{ClockId, clock_gettime};
use stado_resolver::daemon::{Announcement, Served};
use std::ffi::OsStr;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// More than open streams are given to end: for the last state and the goodbyes.
const AFTER_DRAIN: Duration = Duration::from_secs(10);

/// The manager that started this daemon, if one did and listens. All clones speak to the same one.
#[derive(Clone, Default)]
pub(super) struct Manager {
    socket: Option<Arc<UnixDatagram>>,
    watchdog: Option<Duration>,
    ready: Arc<AtomicBool>,
}

/// Why a daemon stops serving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// For good, with so much time for open streams.
    Stop(Duration),
    /// Its own command runs again in this process.
    Restart,
}

impl Manager {
    /// Finds it in the environment. A socket that is not there is nobody's loss.
    pub(super) fn of(env: &Env) -> Self {
        let socket = env.raw("NOTIFY_SOCKET").and_then(|address| match connected(address) {
            Ok(socket) => Some(Arc::new(socket)),
            Err(error) => {
                tracing::warn!(target: "stado::mesh", socket = %address.display(), error = %error, "service_manager_not_told");
                None
            }
        });
        Self {
            watchdog: socket.as_ref().and_then(|_| watchdog(env, std::process::id())),
            socket,
            ready: Arc::default(),
        }
    }

    /// Feeds the watchdog for as long as the runtime lives: each time by a task of its own, so that a runtime that no
    /// longer takes up work is not called alive.
    pub(super) fn keep_fed(&self) {
        let (Some(interval), me) = (self.watchdog, self.clone()) else { return };
        tokio::spawn(async move {
            let mut due = tokio::time::interval(interval / 2);
            due.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                due.tick().await;
                let fed = me.clone();
                let _ = tokio::spawn(async move { fed.tell("WATCHDOG=1") }).await;
            }
        });
    }

    /// Passes on an event of the daemon's life.
    pub(super) fn event(&self, event: &Announcement, ending: Ending) {
        match event {
            Announcement::Up(served) | Announcement::Serving(served) | Announcement::Unwell(served) => {
                self.served(served)
            }
            Announcement::Draining(open) => self.ends(*open, ending),
            Announcement::HandedOver { pid, streams } => self.tell(&status(&format!(
                "handed over to the daemon with pid {pid}; lives until its {streams} open stream(s) end"
            ))),
            Announcement::NobodyToTakeOver | Announcement::TookOver { .. } => {}
        }
    }

    /// A reload begins. Nothing is said before this daemon was ready.
    pub(super) fn reloading(&self) {
        if self.ready.load(Ordering::Relaxed) {
            self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic()));
        }
    }

    /// It is over.
    pub(super) fn reloaded(&self) {
        if self.ready.load(Ordering::Relaxed) {
            self.tell("READY=1");
        }
    }

    fn served(&self, served: &Served) {
        let [mesh, fleet, _] = served.lines();
        let mut message = status(if served.fleet.is_some() { &fleet } else { &mesh });
        if served.is_serving() {
            self.ready.store(true, Ordering::Relaxed);
            message.push_str("\nREADY=1");
        }
        self.tell(&message);
    }

    fn ends(&self, open: usize, ending: Ending) {
        let waits = format!("{open} open stream(s) are given time to end");
        match ending {
            Ending::Stop(grace) => self.tell(&format!(
                "STOPPING=1\nEXTEND_TIMEOUT_USEC={}\n{}",
                (grace + AFTER_DRAIN).as_micros(),
                status(&format!("stopping: {waits}"))
            )),
            Ending::Restart => self.tell(&format!(
                "RELOADING=1\nMONOTONIC_USEC={}\n{}",
                monotonic(),
                status(&format!("starting again: {waits}"))
            )),
        }
    }

    fn tell(&self, message: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(message.as_bytes())
        {
            tracing::debug!(target: "stado::mesh", error = %error, "service_manager_not_told");
        }
    }
}

/// One line.
fn status(text: &str) -> String {
    format!("STATUS={}", text.replace(['\n', '\r'], " "))
}

/// Microseconds of the clock that managers compare with.
fn monotonic() -> i128 {
    let now = clock_gettime(ClockId::Monotonic);
    i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000
}

fn connected(address: &OsStr) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not hold the daemon.
    socket.set_nonblocking(true)?;
    socket.connect_addr(&named(address)?)?;
    Ok(socket)
}

/// A path, or on Linux `@name` for a name without one.
fn named(address: &OsStr) -> io::Result<SocketAddr> {
    use std::os::unix::ffi::OsStrExt;
    match address.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(name)
        }
        [b'/', ..] => SocketAddr::from_pathname(address),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither an absolute path nor @name")),
    }
}

/// How often the manager wants to hear of this process; `None` when it does not.
fn watchdog(env: &Env, pid: u32) -> Option<Duration> {
    let number = |name: &str| env.text(name).ok().flatten().map(|text| text.parse::<u64>());
    match number("WATCHDOG_PID") {
        Some(Ok(whose)) if whose == u64::from(pid) => {}
        None => {}
        Some(_) => return None,
    }
    let every = number("WATCHDOG_USEC")?.ok().filter(|usec| *usec > 0)?;
    Some(Duration::from_micros(every))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 4096];
        let n = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..n]).into_owned()
    }

    fn mesh_alone() -> Served {
        Served {
            socket: Some("/h/devmesh.sock".into()),
            mesh_unserved: None,
            mesh_services: 2,
            index: None,
            router_unserved: None,
            fleet: None,
            store_location: None,
            gate: None,
            object_api: None,
        }
    }

    #[test]
    fn the_watchdog_is_of_the_process_that_it_names() {
        let every = |pairs: [(&str, &str); 2]| watchdog(&Env::of(pairs), 7);
        let second = Some(Duration::from_secs(1));
        assert_eq!(every([("WATCHDOG_USEC", "1000000"), ("WATCHDOG_PID", "7")]), second);
        assert_eq!(every([("WATCHDOG_USEC", "1000000"), ("WATCHDOG_PID", "")]), second);
        assert_eq!(every([("WATCHDOG_USEC", "1000000"), ("WATCHDOG_PID", "8")]), None);
        assert_eq!(every([("WATCHDOG_USEC", "1000000"), ("WATCHDOG_PID", "x")]), None);
        assert_eq!(every([("WATCHDOG_USEC", "0"), ("WATCHDOG_PID", "7")]), None);
        assert_eq!(every([("WATCHDOG_USEC", "soon"), ("WATCHDOG_PID", "7")]), None);
    }

    #[test]
    fn readiness_reloads_and_ends_are_told_in_the_managers_words() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let manager = Manager::of(&Env::of([("NOTIFY_SOCKET", path.to_str().unwrap())]));
        manager.reloading();
        manager.event(&Announcement::Up(mesh_alone()), Ending::Restart);
        assert_eq!(
            heard(&socket),
            "STATUS=mesh: 2 services known, control socket /h/devmesh.sock\nREADY=1",
            "nothing is told of a reload before it is ready"
        );
        manager.reloading();
        assert!(heard(&socket).starts_with("RELOADING=1\nMONOTONIC_USEC="));
        manager.reloaded();
        assert_eq!(heard(&socket), "READY=1");
        manager.event(&Announcement::Draining(3), Ending::Restart);
        assert!(heard(&socket).starts_with("RELOADING=1\n"), "a restart is no end");
        manager.event(&Announcement::Draining(3), Ending::Stop(Duration::from_secs(5)));
        assert_eq!(
            heard(&socket),
            "STOPPING=1\nEXTEND_TIMEOUT_USEC=15000000\nSTATUS=stopping: 3 open stream(s) are given time to end"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_without_a_path_is_reached_and_nobody_there_is_no_loss() {
        use std::os::linux::net::SocketAddrExt;
        let name = format!("stado-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let manager = Manager::of(&Env::of([("NOTIFY_SOCKET", &format!("@{name}"))]));
        manager.tell("WATCHDOG=1");
        assert_eq!(heard(&socket), "WATCHDOG=1");
        drop(socket);
        manager.tell("WATCHDOG=1");
        for nobody in ["/nonexistent/notify", "relative", "@stado-nobody-is-here"] {
            assert!(Manager::of(&Env::of([("NOTIFY_SOCKET", nobody)])).socket.is_none(), "{nobody}");
        }
    }
}
