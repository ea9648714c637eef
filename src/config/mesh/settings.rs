//! Layers → checked values, with the sentences of the mesh contract §4.
use super::{ConfigError, Env, Layers, docker_lookup, variable, wrong};
use crate::config::{Source, format_duration, parse_duration};
use stado_resolver::conn::{Reach, reach};
use stado_resolver::docker;
use stado_resolver::http::HttpConfig;
use stado_resolver::http::tls::TlsSettings;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The mesh's settings, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeshSettings {
    /// Control socket.
    pub socket: PathBuf,
    /// Remembered ports.
    pub state_path: PathBuf,
    /// Address that frontends are bound on.
    pub frontend_host: IpAddr,
    /// First port of the range.
    pub port_min: u16,
    /// Last port of the range.
    pub port_max: u16,
    /// Lease of a registration that asks for none.
    pub lease_ttl: Duration,
    /// How long a frontend without a backend stays bound; zero is for ever.
    pub idle_grace: Duration,
    /// How long a stop waits.
    pub shutdown_timeout: Duration,
    /// Further addresses that frontends are bound on.
    pub also_bind: Vec<IpAddr>,
    /// Addresses that may reach beyond this machine, because they were named a second time.
    pub beyond_this_machine: Vec<IpAddr>,
    /// Where the metrics are served besides the control socket.
    pub metrics_bind: Option<SocketAddr>,
    /// The router, unless it is turned off.
    pub http: Option<HttpConfig>,
    /// Certificates of the HTTPS listener.
    pub tls: TlsSettings,
    /// The container adapter, unless it is turned off.
    pub docker: Option<docker::Config>,
    /// Settings that were chosen and that this build does not serve; each a sentence worth a warning.
    pub unserved: Vec<String>,
}

const LEASE_MIN: Duration = Duration::from_secs(3);
const LEASE_MAX: Duration = Duration::from_secs(3600);

pub(super) fn check(layers: &Layers, env: &Env) -> Result<MeshSettings, ConfigError> {
    let (port_min, port_max) = ports(layers)?;
    let frontend_host = frontend_host(layers.text("tcp-frontend-host"))?;
    let beyond_this_machine = addresses(layers, "allow-beyond-this-machine")?;
    stays_here("tcp-frontend-host", frontend_host, &beyond_this_machine)?;
    let mut unserved = Vec::new();
    let also_bind = also_bind(layers, &beyond_this_machine, &mut unserved)?;
    let lease_ttl = duration(layers, "lease-ttl")?;
    if !(LEASE_MIN..=LEASE_MAX).contains(&lease_ttl) {
        return wrong(format!(
            "lease_ttl must be between {} and {}",
            format_duration(LEASE_MIN),
            format_duration(LEASE_MAX)
        ));
    }
    let shutdown_timeout = duration(layers, "shutdown-timeout")?;
    if shutdown_timeout.is_zero() {
        return wrong("shutdown_timeout must be positive");
    }
    let idle_grace = duration(layers, "frontend-idle-grace")?;
    let allow_exposed = boolean(layers, "docker-allow-non-loopback-published-ports")?;
    let docker = boolean(layers, "docker-enabled")?.then(|| docker(env, allow_exposed)).transpose()?;
    let state_path = state_path(layers, env)?;
    let http = super::http::check(layers, &beyond_this_machine, env)?;
    let tls = super::tls::check(layers, env, &state_path)?;
    let http = http.map(|http| http.with(&tls));
    Ok(MeshSettings {
        socket: path(layers, "socket", env)?,
        state_path,
        frontend_host,
        port_min,
        port_max,
        lease_ttl,
        idle_grace,
        shutdown_timeout,
        also_bind,
        beyond_this_machine,
        metrics_bind: metrics_bind(layers)?,
        http,
        tls,
        docker,
        unserved,
    })
}

fn docker(env: &Env, allow_exposed: bool) -> Result<docker::Config, ConfigError> {
    Ok(docker::Config { lookup: docker_lookup(env)?, allow_exposed, ..docker::Config::default() })
}

fn path(layers: &Layers, name: &str, env: &Env) -> Result<PathBuf, ConfigError> {
    match layers.text(name) {
        "" => wrong(format!("{name} is empty: pass --{name} or set {}", variable(name))),
        text => env.expand(text),
    }
}

fn state_path(layers: &Layers, env: &Env) -> Result<PathBuf, ConfigError> {
    if layers.effective("state").is_none() {
        env.config_dir()?;
    }
    path(layers, "state", env)
}

/// Where a bad value came from, for its sentence: the flag's name, followed by its source unless it is the flag.
pub(super) fn named(layers: &Layers, name: &str) -> String {
    match layers.effective(name) {
        Some((Source::Env, _)) => format!("{name} ({})", variable(name)),
        Some((Source::Config, _)) => format!("{name} (config file)"),
        _ => name.to_owned(),
    }
}

pub(super) fn duration(layers: &Layers, name: &'static str) -> Result<Duration, ConfigError> {
    let text = layers.text(name);
    parse_duration(text)
        .ok_or_else(|| ConfigError(format!("{name}: invalid duration {text:?}: write it like 15s, 1m30s or 500ms")))
}

pub(super) fn boolean(layers: &Layers, name: &'static str) -> Result<bool, ConfigError> {
    match layers.text(name).to_ascii_lowercase().as_str() {
        "true" | "1" | "t" | "yes" | "on" => Ok(true),
        "false" | "0" | "f" | "no" | "off" | "" => Ok(false),
        other => wrong(format!("{}: expected true or false, got {other:?}", named(layers, name))),
    }
}

fn ports(layers: &Layers) -> Result<(u16, u16), ConfigError> {
    let number = |name: &'static str| {
        let text = layers.text(name);
        text.trim()
            .parse::<i64>()
            .map_err(|_| ConfigError(format!("{}: expected a port number, got {text:?}", named(layers, name))))
    };
    let (min, max) = (number("tcp-frontend-min")?, number("tcp-frontend-max")?);
    match (u16::try_from(min), u16::try_from(max)) {
        (Ok(low), Ok(high)) if low > 0 && low <= high => Ok((low, high)),
        _ => wrong(format!("invalid tcp frontend port range {min}-{max}")),
    }
}

fn frontend_host(text: &str) -> Result<IpAddr, ConfigError> {
    let bare = text.trim().trim_start_matches('[').trim_end_matches(']');
    match bare {
        "" => wrong("tcp frontend host is empty"),
        "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        _ => bare.parse().map_err(|_| ConfigError(format!("tcp frontend host {text:?} is not an IP address"))),
    }
}

fn addresses(layers: &Layers, name: &'static str) -> Result<Vec<IpAddr>, ConfigError> {
    let parts = layers.text(name).split(',').map(str::trim).filter(|part| !part.is_empty());
    let parse = |part: &str| part.parse().map_err(|_| ConfigError(format!("{name}: {part:?} is not an IP address")));
    parts.map(parse).collect()
}

/// Addresses of containers' bridges. One that is on no interface now may come: it is warned of and taken when it does.
fn also_bind(layers: &Layers, twice: &[IpAddr], unserved: &mut Vec<String>) -> Result<Vec<IpAddr>, ConfigError> {
    let all = addresses(layers, "also-bind")?;
    for ip in &all {
        if ip.is_unspecified() {
            return wrong(format!("also-bind {ip} is every interface of this machine: name each address by itself"));
        }
        stays_here("also-bind", *ip, twice)?;
        if reach(*ip) == Reach::Absent && !twice.contains(ip) {
            unserved
                .push(format!("also-bind {ip} is on no bridge of this machine now; it is taken when it appears there"));
        }
    }
    Ok(all)
}

/// An address that others than this machine reach must be named twice (design, rule 7).
pub(super) fn stays_here(name: &str, ip: IpAddr, twice: &[IpAddr]) -> Result<(), ConfigError> {
    let why = match reach(ip) {
        _ if twice.contains(&ip) => None,
        Reach::Beyond(why) => Some(why),
        Reach::Absent if name != "also-bind" => Some("is on no bridge of this machine's own".into()),
        Reach::Machine | Reach::Absent => None,
    };
    match why {
        Some(why) => wrong(format!(
            "{name} {ip} {why}, so others than this machine would reach every service; if that is meant, say it twice: \
             --allow-beyond-this-machine {ip}"
        )),
        None => Ok(()),
    }
}

fn metrics_bind(layers: &Layers) -> Result<Option<SocketAddr>, ConfigError> {
    match layers.text("metrics-bind") {
        "" => Ok(None),
        text => match socket_addr("metrics_bind", text)? {
            bind if bind.ip().is_loopback() => Ok(Some(bind)),
            bind => {
                wrong(format!("metrics_bind {bind} is not a loopback address; the metrics are for this machine only"))
            }
        },
    }
}

pub(super) fn socket_addr(key: &str, text: &str) -> Result<SocketAddr, ConfigError> {
    let literal = text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    literal.parse().map_err(|_| ConfigError(format!("invalid {key} {text:?}: write it as IP:PORT")))
}
