//! The daemon that a verb talks to: flag, then variable, then the usual place.
use crate::args::DaemonArgs;
use crate::client::Api;
use crate::config::{Env, parse_duration};
use crate::exit::Failure;
use std::path::PathBuf;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(5);

/// The control socket.
pub(super) fn socket(args: &DaemonArgs, env: &Env) -> PathBuf {
    args.socket.clone().or_else(|| env.path("DEVMESH_SOCKET")).unwrap_or_else(|| env.default_socket())
}

/// The daemon. A `--timeout` that is no duration is five seconds, as it always was.
pub(crate) fn api(args: &DaemonArgs, env: &Env) -> Result<Api, Failure> {
    let text = match &args.timeout {
        Some(text) => Some(text.clone()),
        None => env.text("DEVMESH_TIMEOUT")?,
    };
    let limit = text.and_then(|text| parse_duration(&text)).filter(|limit| !limit.is_zero()).unwrap_or(TIMEOUT);
    Ok(Api::new(socket(args, env)).with_timeout(limit))
}
