//! The first specification's own daemon on our socket: said plainly, with how to change over.
use crate::client::Api;
use crate::config::MeshSettings;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;

/// A daemon that does not answer at once is not waited for: whoever binds the socket will say what is there.
const PATIENCE: Duration = Duration::from_millis(500);

/// How to change over, when the first specification's daemon answers where ours would.
pub(super) async fn how_to_change_over(settings: &MeshSettings) -> Option<String> {
    let api = Api::new(&settings.socket).with_timeout(PATIENCE);
    match api.has_additions().await {
        Ok(false) => Some(sentence(settings, pid(&settings.socket).await)),
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

/// Who listens on a Unix socket, where the system tells it.
async fn pid(socket: &Path) -> Option<i32> {
    UnixStream::connect(socket).await.ok()?.peer_cred().ok()?.pid()
}
