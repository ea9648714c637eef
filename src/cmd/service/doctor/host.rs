//! What this host lets the daemon do.
use super::Check;
use rustix::process::{Resource, getrlimit};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;

/// A daemon with fewer descriptors is soon full: each connection takes two.
const DESCRIPTORS: u64 = 1024;

pub(super) fn checks(socket: &Path) -> Vec<Check> {
    vec![loopback("loopback-bind", Ipv4Addr::LOCALHOST.into()), loopback_v6(), socket_dir(socket), descriptors()]
}

fn loopback(name: &str, ip: std::net::IpAddr) -> Check {
    match TcpListener::bind(SocketAddr::new(ip, 0)).and_then(|listener| listener.local_addr()) {
        Ok(addr) => Check::ok(name, format!("bound {addr}")),
        Err(error) => Check::fail(name, format!("cannot bind {ip}: {error}")),
    }
}

/// A frontend takes both families, so that `localhost` cannot reach a stranger.
fn loopback_v6() -> Check {
    match TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrNotAvailable => {
            Check::skip("loopback-bind-ipv6", "this host has no IPv6 loopback; frontends are on 127.0.0.1 alone")
        }
        _ => loopback("loopback-bind-ipv6", Ipv6Addr::LOCALHOST.into()),
    }
}

/// The socket's directory exists, or can be made, private; and takes a file.
fn socket_dir(socket: &Path) -> Check {
    let dir = socket.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let result = stado_fleet::disk::private_dir(dir).map_err(|e| e.to_string()).and_then(|()| probe(dir));
    match result {
        Ok(()) => Check::ok("socket-dir", format!("{} writable", dir.display())),
        Err(error) => Check::fail("socket-dir", error),
    }
}

fn probe(dir: &Path) -> Result<(), String> {
    let file = dir.join(format!(".doctor-{}", std::process::id()));
    let cannot = |e: std::io::Error| format!("{} is not writable: {e}", dir.display());
    std::fs::OpenOptions::new().write(true).create_new(true).open(&file).map_err(cannot)?;
    std::fs::remove_file(&file).map_err(cannot)
}

/// The daemon raises its soft limit to the hard one.
fn descriptors() -> Check {
    match getrlimit(Resource::Nofile).maximum {
        Some(hard) if hard < DESCRIPTORS => Check::fail(
            "descriptor-limit",
            format!("{hard}: fewer than {} connections fit; raise it (ulimit -Hn, LimitNOFILE=)", hard / 2),
        ),
        Some(hard) => Check::ok("descriptor-limit", hard.to_string()),
        None => Check::ok("descriptor-limit", "none"),
    }
}
