//! The program: started with its variables, told of signals, waited for.
use crate::exit::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use tokio::process::Command;
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

/// A running program.
pub(super) struct Child {
    process: tokio::process::Child,
}

/// The signals that reach us and are meant for it.
pub(super) struct Signals {
    terminate: Listener,
    interrupt: Listener,
    hangup: Listener,
    first: Listener,
    second: Listener,
}

/// How the program ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended(ExitStatus);

impl Ended {
    /// Its exit code; 128 and the signal's number for one that a signal ended, as shells have it.
    pub(super) fn code(self) -> u8 {
        let code = self.0.code().or_else(|| self.0.signal().map(|number| 128 + number));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }
}

impl Signals {
    /// The signals are ours from here on.
    pub(super) fn listen() -> Result<Self, Failure> {
        let listen =
            |kind: SignalKind| signal(kind).map_err(|e| Failure::here(format!("cannot listen for signals: {e}")));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
            first: listen(SignalKind::user_defined1())?,
            second: listen(SignalKind::user_defined2())?,
        })
    }

    /// The next one that somebody sent us.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.hangup.recv() => Signal::HUP,
            _ = self.first.recv() => Signal::USR1,
            _ = self.second.recv() => Signal::USR2,
        }
    }
}

impl Child {
    /// Starts it.
    pub(super) fn start(command: &[OsString], variables: &[(String, String)]) -> Result<Self, Failure> {
        let (program, arguments) = command.split_first().ok_or_else(|| Failure::usage("no program was named"))?;
        let pairs = variables.iter().map(|(name, value)| (name, value));
        let process = Command::new(program).args(arguments).envs(pairs).spawn();
        let process = process.map_err(|e| Failure::config(format!("cannot run {}: {e}", program.to_string_lossy())))?;
        Ok(Self { process })
    }

    /// When it has ended. May be asked again after it was cancelled.
    pub(super) async fn ended(&mut self) -> Result<Ended, Failure> {
        self.process.wait().await.map(Ended).map_err(|e| Failure::here(format!("cannot wait for the program: {e}")))
    }

    /// Passes a signal on. A terminal's Ctrl-C has reached the program already.
    pub(super) fn pass_on(&self, signal: Signal) {
        if signal == Signal::INT && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
            return;
        }
        let pid = self.process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid
            && let Err(error) = kill_process(pid, signal)
        {
            tracing::warn!(%error, ?signal, "signal_not_passed_on");
        }
    }
}
