use super::daemon;
use crate::args::RowsArgs;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui::{self, Rows};
use std::path::Path;

/// One line of the report: check, status, detail.
struct Check(&'static str, &'static str, String);

/// `doctor`: is the daemon there, and does this host let it work. Rows are printed before a failing exit.
pub(crate) async fn doctor(args: RowsArgs, env: &Env) -> Verb {
    let mut checks = daemon_reachable(&args, env).await?;
    checks.push(loopback_bind());
    checks.push(socket_dir(&daemon::socket(&args.daemon, env)));
    let failed = checks.iter().any(|Check(_, status, _)| *status == "fail");
    let mut rows = Rows::new(&["check", "status", "detail"]);
    for Check(name, status, detail) in checks {
        rows = rows.with([name.to_owned(), status.to_owned(), detail]);
    }
    ui::print(&ui::render(&rows, &args.output)?)?;
    if failed { Err(Failure::here("doctor found failing checks")) } else { Ok(Outcome::Done) }
}

async fn daemon_reachable(args: &RowsArgs, env: &Env) -> Result<Vec<Check>, Failure> {
    let health = match daemon::api(&args.daemon, env)?.health().await {
        Ok(health) => health,
        Err(error) => return Ok(vec![Check("daemon-reachable", "fail", error.to_string())]),
    };
    let docker = match health.docker.as_str() {
        "connected" => ("ok", "connected".to_owned()),
        "disabled" => ("skip", "disabled by configuration".to_owned()),
        other => ("fail", format!("status: {other}")),
    };
    Ok(vec![
        Check("daemon-reachable", "ok", format!("version {}", health.version)),
        Check("docker", docker.0, docker.1),
    ])
}

fn loopback_bind() -> Check {
    match std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()) {
        Ok(addr) => Check("loopback-bind", "ok", format!("bound {addr}")),
        Err(error) => Check("loopback-bind", "fail", format!("cannot bind 127.0.0.1: {error}")),
    }
}

/// The socket's directory exists, or can be made, private; and takes a file.
fn socket_dir(socket: &Path) -> Check {
    let dir = socket.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let result = stado_fleet::disk::private_dir(dir).map_err(|e| e.to_string()).and_then(|()| probe(dir));
    match result {
        Ok(()) => Check("socket-dir", "ok", format!("{} writable", dir.display())),
        Err(error) => Check("socket-dir", "fail", error),
    }
}

fn probe(dir: &Path) -> Result<(), String> {
    let file = dir.join(format!(".doctor-{}", std::process::id()));
    let cannot = |e: std::io::Error| format!("{} is not writable: {e}", dir.display());
    std::fs::OpenOptions::new().write(true).create_new(true).open(&file).map_err(cannot)?;
    std::fs::remove_file(&file).map_err(cannot)
}
