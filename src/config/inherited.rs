//! Sockets that a service manager passed (`LISTEN_FDS`, `LISTEN_PID`).
use listenfd::ListenFd;
use stado_resolver::http::Inherited;

/// The TCP listeners among what was passed to this very process. Anything else is left alone.
pub(crate) fn inherited() -> Inherited {
    let mut passed = ListenFd::from_env();
    let listeners = (0..passed.len()).filter_map(|at| passed.take_tcp_listener(at).ok().flatten());
    Inherited::new(listeners.collect())
}
