//! SIGTERM and SIGINT → an orderly stop, and the second one ends the daemon now; SIGHUP → the configuration is read again;
//! SIGUSR2 → an orderly stop, and then the same command again in the same process.
use super::manager::Manager;
use super::reload::Reload;
use super::terminal::Terminal;
use crate::exit::Failure;
use stado_resolver::daemon::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// What the signals act on.
#[derive(Clone)]
pub(super) struct Signals {
    shutdown: Shutdown,
    reload: Arc<Reload>,
    restart: Arc<AtomicBool>,
    terminal: Terminal,
    manager: Manager,
}

impl Signals {
    pub(super) fn new(shutdown: Shutdown, reload: Arc<Reload>, manager: Manager) -> Self {
        Self { shutdown, reload, restart: Arc::default(), terminal: Terminal::now(), manager }
    }

    /// Listens from here on, for as long as the runtime lives.
    pub(super) fn listen(&self) -> Result<(), Failure> {
        self.on(SignalKind::terminate(), Self::stop)?;
        self.on(SignalKind::interrupt(), Self::stop)?;
        self.on(SignalKind::hangup(), Self::hang_up)?;
        self.on(SignalKind::user_defined2(), Self::start_again)
    }

    /// Whether the same command is to be run again after an orderly end.
    pub(super) fn wants_restart(&self) -> bool {
        self.restart.load(Ordering::Relaxed)
    }

    fn on(&self, kind: SignalKind, act: fn(&Self)) -> Result<(), Failure> {
        let mut signals = signal(kind).map_err(|e| Failure::here(format!("cannot listen for signals: {e}")))?;
        let me = self.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                act(&me);
            }
        });
        Ok(())
    }

    fn stop(&self) {
        self.restart.store(false, Ordering::Relaxed);
        self.shutdown.signal();
    }

    /// A terminal that is closed ends what was started in it; anything else that sends this signal asks for a reload.
    fn hang_up(&self) {
        if self.terminal.is_gone() {
            return self.stop();
        }
        self.manager.reloading();
        self.reload.run();
        self.manager.reloaded();
    }

    fn start_again(&self) {
        if self.shutdown.has_left() {
            tracing::warn!(target: "stado::mesh", error = "another daemon has taken over from this one", "restart_refused");
            return;
        }
        match self.reload.check() {
            Ok(()) if !self.shutdown.is_draining() => {
                tracing::info!(target: "stado::mesh", "daemon_restarting");
                self.restart.store(true, Ordering::Relaxed);
                self.shutdown.drain();
            }
            Ok(()) => {}
            Err(failure) => tracing::warn!(target: "stado::mesh", error = failure.message, "restart_refused"),
        }
    }
}
