//! What a daemon says of itself: to the person who started it, and to the log.
use crate::ui;
use stado_resolver::daemon::Announcement;

/// Who is listening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    /// Somebody at a terminal, or a supervisor's log: three lines on standard output.
    Person,
    /// Only the log, as the first specification's daemon.
    Log,
}

/// Says an event of the daemon's life. A standard output that is gone stops no daemon.
pub(super) fn announce(voice: Voice, event: &Announcement) {
    log(event);
    match (event, voice) {
        (Announcement::Up(served), Voice::Person) => {
            let _ = ui::print(&served.lines().map(|line| line + "\n").concat());
        }
        (Announcement::Serving(served), Voice::Person) => {
            let [_, fleet, next] = served.lines();
            let _ = ui::print(&format!("{fleet}\n{next}\n"));
        }
        (Announcement::Draining(open), Voice::Person) if *open > 0 => {
            ui::note(format_args!(
                "stopping: {open} open stream(s) are given time to end; a second signal ends them now"
            ));
        }
        (Announcement::NobodyToTakeOver, Voice::Person) => {
            ui::note("no daemon runs for this home: there is nothing to take over, so this one simply starts");
        }
        (Announcement::TookOver { pid, streams }, Voice::Person) => {
            ui::note(format_args!(
                "took over from the daemon with pid {pid}, which lives until its {streams} open stream(s) end"
            ));
        }
        (Announcement::HandedOver { pid, streams }, Voice::Person) => {
            ui::note(format_args!(
                "the daemon with pid {pid} has taken over; this one lives until its {streams} open stream(s) end"
            ));
        }
        _ => {}
    }
}

/// The event names that readers of the first specification's log know.
fn log(event: &Announcement) {
    match event {
        Announcement::Up(served) => {
            if let Some(socket) = &served.socket {
                tracing::info!(target: "stado::mesh", socket = %socket.display(), "listening");
            }
            tracing::info!(target: "stado::mesh", version = env!("CARGO_PKG_VERSION"), "daemon_started");
        }
        Announcement::Draining(open) => tracing::info!(target: "stado::mesh", open_streams = open, "daemon_stopping"),
        Announcement::NobodyToTakeOver => tracing::info!(target: "stado::mesh", "nobody_to_take_over"),
        Announcement::TookOver { pid, streams } => {
            tracing::info!(target: "stado::mesh", from_pid = pid, open_streams = streams, "daemon_took_over");
        }
        Announcement::HandedOver { pid, streams } => {
            tracing::info!(target: "stado::mesh", to_pid = pid, open_streams = streams, "daemon_handed_over");
        }
        Announcement::Serving(_) | Announcement::Unwell(_) => {}
    }
}
