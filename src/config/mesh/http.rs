//! The `http` section: where the router listens, what it allows, what it writes down.
use super::settings::{boolean, duration, named, socket_addr, stays_here};
use super::{ConfigError, Env, Layers, wrong};
use stado_resolver::http::{AccessFormat, AccessLog, HttpConfig, Limits, Rotate};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The section, checked; `None` is off. A certificate alone opens HTTPS (mesh contract §4); where plain HTTP is on, HTTPS
/// is served beside it as soon as there is a certificate, such as the local authority's.
pub(super) fn check(layers: &Layers, twice: &[IpAddr], env: &Env) -> Result<Option<HttpConfig>, ConfigError> {
    let enabled = boolean(layers, "http-enabled")?;
    let http = enabled.then(|| listener(layers, "http_addr", "http-addr", twice)).transpose()?;
    let certified = paired(layers)? || !layers.text("http-certificates").is_empty();
    let https = (enabled || certified).then(|| listener(layers, "https_addr", "https-addr", twice));
    let https = if certified { https.transpose()? } else { https.and_then(Result::ok) };
    let (limits, access) = (limits(layers)?, access(layers, env)?);
    let config = HttpConfig { http, https, limits, access, ..HttpConfig::default() };
    Ok((enabled || certified).then_some(config))
}

fn listener(layers: &Layers, key: &str, name: &'static str, twice: &[IpAddr]) -> Result<SocketAddr, ConfigError> {
    let addr = socket_addr(key, layers.text(name))?;
    if addr.port() == 0 {
        return wrong(format!("invalid {key} \"{addr}\": name a port"));
    }
    stays_here(name, addr.ip(), twice)?;
    Ok(addr)
}

/// Both files or none.
fn paired(layers: &Layers) -> Result<bool, ConfigError> {
    match (layers.text("http-cert-file"), layers.text("http-key-file")) {
        ("", "") => Ok(false),
        (cert, key) if !cert.is_empty() && !key.is_empty() => Ok(true),
        _ => {
            socket_addr("https_addr", layers.text("https-addr"))?;
            wrong("both http.cert_file and http.key_file are required for TLS")
        }
    }
}

fn limits(layers: &Layers) -> Result<Limits, ConfigError> {
    let number = |name: &'static str, range: std::ops::RangeInclusive<u64>| {
        let text = layers.text(name);
        match text.trim().parse::<u64>() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => wrong(format!(
                "{}: expected a number from {} to {}, got {text:?}",
                named(layers, name),
                range.start(),
                range.end()
            )),
        }
    };
    let count = |name, range| number(name, range).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let span = |name: &'static str| match duration(layers, name)? {
        Duration::ZERO => wrong(format!("{} must be positive", named(layers, name))),
        span => Ok(span),
    };
    Ok(Limits {
        head_bytes: count("http-head-bytes", 1024..=16 << 20)?,
        header_count: count("http-header-count", 16..=4096)?,
        connections: count("http-connections", 1..=1 << 20)?,
        service_requests: count("http-service-requests", 1..=1 << 20)?,
        head_deadline: span("http-head-timeout")?,
        hello_deadline: span("http-tls-timeout")?,
        idle: span("http-idle-timeout")?,
        unread: span("http-unread-timeout")?,
        backend_idle: span("http-backend-idle-timeout")?,
        h2_streams: u32::try_from(number("http-h2-streams", 1..=65_536)?).unwrap_or(u32::MAX),
        h2_resets: count("http-h2-resets", 1..=65_536)?,
    })
}

fn access(layers: &Layers, env: &Env) -> Result<Option<AccessLog>, ConfigError> {
    let format = match layers.text("http-access-log-format") {
        "json" => AccessFormat::Json,
        "combined" => AccessFormat::Combined,
        other => return unknown(layers, "http-access-log-format", "json or combined", other),
    };
    let rotate = match layers.text("http-access-log-rotate") {
        "never" => Rotate::Never,
        "hourly" => Rotate::Hourly,
        "daily" => Rotate::Daily,
        other => return unknown(layers, "http-access-log-rotate", "never, hourly or daily", other),
    };
    let keep = layers.text("http-access-log-keep");
    let Ok(keep) = keep.trim().parse::<u16>() else {
        return unknown(layers, "http-access-log-keep", "a number of files", keep);
    };
    match layers.text("http-access-log") {
        "" => Ok(None),
        path => Ok(Some(AccessLog { path: env.expand(path)?, format, rotate, keep: keep.into() })),
    }
}

fn unknown<T>(layers: &Layers, name: &str, wanted: &str, got: &str) -> Result<T, ConfigError> {
    wrong(format!("{}: expected {wanted}, got {got:?}", named(layers, name)))
}
