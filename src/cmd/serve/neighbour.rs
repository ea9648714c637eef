//! The first specification's own daemon on our socket: said plainly, with how to change over.
use crate::client::Api;
use crate::config::MeshSettings;
use rustix::net::sockopt::socket_peercred;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A daemon that does not answer at once is not waited for: whoever binds the socket will say what is there.
const PATIENCE: Duration = Duration::from_millis(500);

/// How to change over, when the first specification's daemon answers where ours would.
pub(super) async fn how_to_change_over(settings: &MeshSettings) -> Option<String> {
    let api = Api::new(&settings.socket).with_timeout(PATIENCE);
    match api.has_additions().await {
        Ok(false) => Some(sentence(settings, pid(&settings.socket))),
        Ok(true) | Err(_) => None,
    }
}

fn sentence(settings: &MeshSettings, pid: Option<i32>) -> String {
    let (who, stop) = match pid {
        Some(pid) => (format!(" (pid {pid})"), format!("`kill -TERM {pid}`")),
        None => (String::new(), "a SIGTERM".to_owned()),
    };
    format!(
        "the daemon on {socket}{who} is the first specification's own devmeshd. To change over without losing a port: stop \
         it with {stop}, then start this one. It reads the same state file, {state}, and binds every port in it before it \
         answers; programs that registered themselves come back with their next heartbeat. If that daemon was given a \
         --state or a --config of its own, give this one the same",
        socket = settings.socket.display(),
        state = settings.state_path.display(),
    )
}

/// Who listens on a Unix socket.
fn pid(socket: &Path) -> Option<i32> {
    let stream = UnixStream::connect(socket).ok()?;
    socket_peercred(&stream).ok().map(|peer| peer.pid.as_raw_nonzero().get())
}
