//! The checks of the mesh, with what to do about each.
use super::report::Check;
use crate::args::RowsArgs;
use crate::cmd::service;
use crate::config::Env;
use crate::exit::Failure;

pub(super) async fn checks(args: &RowsArgs, env: &Env) -> Result<Vec<Check>, Failure> {
    let checks = service::mesh_checks(args, env).await?.into_iter().map(|check| {
        let about = (check.name.as_str(), check.name.as_str());
        match check.status {
            "ok" => Check::ok(about, check.detail),
            "skip" => Check::skip(about, check.detail),
            _ => Check::fail(about, check.detail, remedy(&check.name)),
        }
    });
    Ok(checks.collect())
}

fn remedy(name: &str) -> &'static str {
    match name {
        "daemon-reachable" => "Start the daemon with `stado resolver serve`, or name its socket with --socket.",
        "loopback-bind" | "loopback-bind-ipv6" => "Bring the loopback interface up (`ip link set lo up`).",
        "socket-dir" => "Make the socket's directory this account's own and writable, or choose another with --socket.",
        "descriptor-limit" => "Raise the limit of open files for the daemon (ulimit -Hn, LimitNOFILE=).",
        "docker" | "docker-engine" => "Start the container engine, or set docker.enabled to false.",
        _ => "Do what its detail says.",
    }
}
