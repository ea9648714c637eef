//! Backend addresses of a registration: checked to be loopback before any lock is taken, and kept dialable.
use super::error::Refusal;
use super::names::quoted;
use stado_fleet::directory::Route;
use stado_fleet::name::{LoopbackAddr, LoopbackHost};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

/// How long a name may take to resolve before the registration is refused.
const RESOLVE_WITHIN: Duration = Duration::from_secs(2);

/// A backend that has been checked: as it is shown, and as it is dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// Host as the producer wrote it, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// What is dialled. A name was resolved once, when it was checked, and is dialled by its address.
    pub addr: LoopbackAddr,
    /// The way to it when it is on another host's loopback; `None` is this host.
    pub via: Option<Arc<Route>>,
}

/// Checks port, host and loopback, in this order (mesh contract §1.5, step 5).
pub(super) async fn check(host: &str, port: i64) -> Result<Backend, Refusal> {
    let number = u16::try_from(port).ok().filter(|port| *port != 0);
    let port = number.ok_or_else(|| Refusal::Backend(format!("backend port {port} out of range")))?;
    if host.is_empty() {
        return Err(Refusal::Backend("backend host is empty".into()));
    }
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let found = match bare.parse::<IpAddr>() {
        _ if bare == "localhost" => LoopbackHost::Localhost,
        Ok(ip) if ip.to_canonical().is_loopback() => LoopbackHost::Ip(ip.to_canonical()),
        Ok(_) => return Err(not_loopback(host, "")),
        Err(_) => resolve(host, bare, port).await?,
    };
    Ok(Backend { host: bare.to_owned(), port, addr: LoopbackAddr { host: found, port }, via: None })
}

async fn resolve(host: &str, bare: &str, port: u16) -> Result<LoopbackHost, Refusal> {
    let lookup = tokio::time::timeout(RESOLVE_WITHIN, tokio::net::lookup_host((bare, port))).await;
    let found = match lookup {
        Err(_) => return Err(not_loopback(host, ": its name did not resolve within 2s")),
        Ok(Err(error)) => return Err(not_loopback(host, &format!(": {error}"))),
        Ok(Ok(found)) => found.map(|addr| addr.ip().to_canonical()).collect::<Vec<_>>(),
    };
    if let Some(foreign) = found.iter().find(|ip| !ip.is_loopback()) {
        return Err(not_loopback(host, &format!(": it resolves to {foreign}")));
    }
    all_loopback(&found).ok_or_else(|| not_loopback(host, ": it resolves to nothing"))
}

/// The host that reaches all of `found`: the pair of usual literals is `localhost`, else the first address.
fn all_loopback(found: &[IpAddr]) -> Option<LoopbackHost> {
    let has = |ip: IpAddr| found.contains(&ip);
    if has(Ipv4Addr::LOCALHOST.into()) && has(Ipv6Addr::LOCALHOST.into()) {
        return Some(LoopbackHost::Localhost);
    }
    found.first().copied().map(LoopbackHost::Ip)
}

fn not_loopback(host: &str, why: &str) -> Refusal {
    Refusal::Backend(format!("backend host {} is not a loopback address{why}", quoted(host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(host: &str, port: i64) -> String {
        check(host, port).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn port_then_host_then_loopback_are_checked() {
        assert_eq!(text("", 0).await, "backend port 0 out of range");
        assert_eq!(text("127.0.0.1", 65536).await, "backend port 65536 out of range");
        assert_eq!(text("127.0.0.1", -1).await, "backend port -1 out of range");
        assert_eq!(text("", 1).await, "backend host is empty");
        assert_eq!(text("10.0.0.5", 1).await, r#"backend host "10.0.0.5" is not a loopback address"#);
        assert_eq!(text("0.0.0.0", 1).await, r#"backend host "0.0.0.0" is not a loopback address"#);
        assert!(
            text("no such host", 1).await.starts_with(r#"backend host "no such host" is not a loopback address: "#)
        );
    }

    #[tokio::test]
    async fn literals_are_kept_dialable() {
        let addr = async |host: &str| check(host, 80).await.unwrap().addr.to_string();
        assert_eq!(addr("127.9.8.7").await, "127.9.8.7:80");
        assert_eq!(addr("[::1]").await, "[::1]:80");
        assert_eq!(addr("::ffff:127.0.0.1").await, "127.0.0.1:80");
        assert_eq!(addr("localhost").await, "localhost:80");
        assert_eq!(check("[::1]", 80).await.unwrap().host, "::1");
    }

    #[test]
    fn a_name_with_both_usual_literals_is_dialled_on_both() {
        let (four, six) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
        assert_eq!(all_loopback(&[six, four]), Some(LoopbackHost::Localhost));
        assert_eq!(all_loopback(&[six]), Some(LoopbackHost::Ip(six)));
        assert_eq!(all_loopback(&[]), None);
    }
}
