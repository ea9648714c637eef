//! The ports of the router: bound, or the usual ones where this account may not have what was asked for, or missing with the
//! reason. The mesh makes its URLs of what is held.
use super::outside::Outside;
use super::router_side::sentence;
use crate::conn::{self, BindError, Bound, Families};
use crate::http::tls::{CertStatus, Tls};
use crate::http::{HttpContext, Inherited, Listener, Listening, Router, Scheme, hostname};
use crate::mesh::Mesh;
use stado_fleet::wire::{Certificate, CertificateList};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// How often certificates are looked at for the state file's sake.
const LOOK: Duration = Duration::from_secs(5);

/// How every port stands, and who is told.
#[derive(Debug)]
pub(super) struct Ports {
    mesh: Weak<Mesh>,
    certificates: Certificates,
    inherited: Inherited,
    outside: Option<Outside>,
    /// What was found at the start and does not change.
    said: Vec<String>,
    known: Mutex<Vec<(Scheme, Result<Held, String>)>>,
    /// What is wrong with certificates.
    aged: Mutex<Vec<String>>,
    /// Ports of which a loopback half is somebody else's.
    halved: Mutex<BTreeMap<SocketAddr, String>>,
}

/// What HTTPS is served with.
#[derive(Debug, Clone)]
pub(super) struct Certificates {
    pub(super) tls: Option<Arc<Tls>>,
    /// Why it is not served although it was asked for.
    pub(super) refused: Option<String>,
}

impl Certificates {
    /// As the socket API tells it. Looks at the files; blocks meanwhile.
    fn list(&self) -> CertificateList {
        let all = self.tls.as_ref().map(|tls| tls.look_and_tell(jiff::Timestamp::now())).unwrap_or_default();
        CertificateList {
            served: self.tls.is_some(),
            certificates: all.into_iter().map(CertStatus::into_wire).collect(),
            refused: self.refused.clone(),
        }
    }
}

/// A port that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    port: u16,
    /// Why it is not the one that was asked for.
    instead: Option<String>,
}

impl Ports {
    pub(super) fn new(
        mesh: &Arc<Mesh>,
        certificates: Certificates,
        inherited: Inherited,
        outside: Option<Outside>,
        said: Vec<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            mesh: Arc::downgrade(mesh),
            certificates,
            inherited,
            outside,
            said,
            known: Mutex::default(),
            aged: Mutex::default(),
            halved: Mutex::default(),
        })
    }

    /// Keeps the fleet's state file told of services that lost their hostname to another.
    pub(super) fn follow_shaded(self: &Arc<Self>, stop: CancellationToken) {
        let Some(mesh) = self.mesh.upgrade() else { return };
        let (mut shaded, this) = (mesh.sites().shaded(), Arc::clone(self));
        tokio::spawn(async move {
            while let Some(Ok(())) = stop.run_until_cancelled(shaded.changed()).await {
                this.tell();
            }
        });
    }

    /// Keeps it told of certificates that end, or whose files no longer load.
    pub(super) fn follow_certificates(self: &Arc<Self>, stop: CancellationToken) {
        if self.outside.is_none() || self.certificates.tls.is_none() {
            return;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let mut looks = interval(LOOK);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while stop.run_until_cancelled(looks.tick()).await.is_some() {
                let certificates = this.certificates.clone();
                let list = tokio::task::spawn_blocking(move || certificates.list()).await.unwrap_or_default();
                let said = |one: Certificate| Some(format!("certificate {}: {}", one.source, one.problem?));
                let now: Vec<String> = list.certificates.into_iter().filter_map(said).collect();
                let changed = {
                    let mut aged = this.aged.lock().unwrap_or_else(PoisonError::into_inner);
                    std::mem::replace(&mut *aged, now.clone()) != now
                };
                if changed {
                    this.tell();
                }
            }
        });
    }

    /// Keeps it told of a loopback half that is somebody else's: a client that asks for a name under `localhost` may reach that
    /// one instead (proxy rule 2).
    fn follow_halves(self: &Arc<Self>, router: &Router) {
        for (at, mut half) in router.halves() {
            let this = Arc::downgrade(self);
            tokio::spawn(async move {
                loop {
                    let now = half.borrow_and_update().clone();
                    match this.upgrade() {
                        Some(this) => this.set_half(at, now),
                        None => return,
                    }
                    if half.changed().await.is_err() {
                        return;
                    }
                }
            });
        }
    }

    fn set_half(&self, at: SocketAddr, now: Option<String>) {
        let said = now.map(|clause| format!("the router at {at} serves one loopback family only: {clause}"));
        if let Some(sentence) = &said {
            tracing::warn!(target: "stado::mesh", bind = %at, error = sentence, "http_half_not_served");
        }
        let before = {
            let mut halved = self.halved.lock().unwrap_or_else(PoisonError::into_inner);
            match said.clone() {
                Some(sentence) => halved.insert(at, sentence),
                None => halved.remove(&at),
            }
        };
        if before != said {
            self.tell();
        }
    }

    fn set(&self, scheme: Scheme, now: Result<Held, String>) {
        {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            match known.iter_mut().find(|(of, _)| *of == scheme) {
                Some((_, before)) if *before == now => return,
                Some((_, before)) => *before = now,
                None => known.push((scheme, now)),
            }
        }
        self.tell();
    }

    /// Tells the mesh where URLs lead, and the fleet what is worth saying.
    fn tell(&self) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(mesh) = self.mesh.upgrade() else { return };
        mesh.set_router(listening(&known, &self.certificates));
        if let Some(outside) = &self.outside {
            let instead = known.iter().filter_map(|(_, now)| now.as_ref().ok()?.instead.clone());
            let shaded: Vec<String> = mesh.sites().shaded().borrow().iter().map(sentence).collect();
            let aged = self.aged.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let halved: Vec<String> =
                self.halved.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
            let all = self.said.iter().cloned().chain(instead).chain(halved).chain(aged).chain(shaded);
            let index = mesh.router().url(hostname::OWN).map(|url| format!("{url}/"));
            outside.router_says(all.collect(), index);
        }
    }
}

/// Binds one port and serves it.
pub(super) fn open(
    scheme: Scheme,
    asked: SocketAddr,
    ports: &Arc<Ports>,
    context: &Arc<HttpContext>,
) -> Result<Router, String> {
    let passed = ports.inherited.take(asked).map(|bound| Ok((bound.completed(), None)));
    match passed.unwrap_or_else(|| bound(scheme, asked, &ports.inherited)) {
        Ok((bound, instead)) => {
            let at = bound.addr;
            let router =
                Router::start(Arc::clone(context), vec![Listener { bound, scheme }], ports.certificates.tls.clone());
            tracing::info!(target: "stado::mesh", scheme = scheme.as_str(), bind = %at, "http_listening");
            ports.set(scheme, Ok(Held { port: at.port(), instead }));
            ports.follow_halves(&router);
            Ok(router)
        }
        Err(why) => {
            ports.set(scheme, Err(why.clone()));
            Err(why)
        }
    }
}

/// Where the ports that are held are, or why there is none.
fn listening(known: &[(Scheme, Result<Held, String>)], certificates: &Certificates) -> Listening {
    let held = |scheme| known.iter().find(|(of, _)| *of == scheme).and_then(|(_, now)| Some(now.as_ref().ok()?.port));
    let problem = known.iter().find_map(|(_, now)| now.as_ref().err());
    Listening {
        http: held(Scheme::Http),
        https: held(Scheme::Https),
        covers: certificates
            .tls
            .clone()
            .map(|tls| Arc::new(move |host: &str| tls.serves(host, jiff::Timestamp::now())) as _),
        certificates: {
            let certificates = certificates.clone();
            Some(Arc::new(move || certificates.list()) as _)
        },
        reason: problem.map(|why| format!("the HTTP router is not served: {why}").into()),
    }
}

/// The port, or the usual one of its scheme with the reason where this account may not bind it.
fn bound(scheme: Scheme, asked: SocketAddr, passed: &Inherited) -> Result<(Bound, Option<String>), String> {
    match conn::bind(asked, Families::AtLeastOne) {
        Ok(bound) => Ok((bound, None)),
        Err(error) => match instead_of(&error, scheme) {
            None => {
                let why = conn::refused(&error);
                tracing::warn!(target: "stado::mesh", scheme = scheme.as_str(), bind = %asked, error = why, "http_not_served");
                Err(why)
            }
            Some(other) => fall_back(scheme, &error, other, passed),
        },
    }
}

fn fall_back(
    scheme: Scheme,
    error: &BindError,
    other: SocketAddr,
    passed: &Inherited,
) -> Result<(Bound, Option<String>), String> {
    // The process before this one may have had it for the same reason.
    let bound = passed.take(other).map(Bound::completed).map_or_else(|| conn::bind(other, Families::AtLeastOne), Ok);
    let bound = bound.map_err(|second| format!("{error}, and instead of it {}", conn::refused(&second)))?;
    let (scheme, asked) = (scheme.as_str(), error.addr);
    tracing::warn!(target: "stado::mesh", scheme, bind = %asked, instead = %other, "http_port_not_permitted");
    let why = format!(
        "{scheme} is served on {other}: {asked} needs a right that this account lacks; `sudo setcap \
         cap_net_bind_service=+ep` on the program gives it, or ask for a port from 1024 up"
    );
    Ok((bound, Some(why)))
}

/// The port that is tried where the system says that this account may not have the one that was asked for.
fn instead_of(error: &BindError, scheme: Scheme) -> Option<SocketAddr> {
    let usual = match scheme {
        Scheme::Http => 8088,
        Scheme::Https => 8443,
    };
    let low = error.addr.port() < 1024 && error.source.kind() == ErrorKind::PermissionDenied;
    low.then(|| SocketAddr::new(error.addr.ip(), usual))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_port_without_the_right_to_it_has_a_substitute_and_a_taken_one_has_none() {
        let error = |addr: &str, kind: ErrorKind| BindError { addr: addr.parse().unwrap(), source: kind.into() };
        let instead = |addr, kind, scheme| instead_of(&error(addr, kind), scheme).map(|addr| addr.to_string());
        let denied = ErrorKind::PermissionDenied;
        assert_eq!(instead("127.0.0.1:80", denied, Scheme::Http).as_deref(), Some("127.0.0.1:8088"));
        assert_eq!(instead("[::1]:443", denied, Scheme::Https).as_deref(), Some("[::1]:8443"));
        assert_eq!(instead("127.0.0.1:80", ErrorKind::AddrInUse, Scheme::Http), None);
        assert_eq!(instead("127.0.0.1:8080", denied, Scheme::Http), None);
    }

    const NONE: Certificates = Certificates { tls: None, refused: None };

    #[test]
    fn urls_follow_the_ports_that_are_held_and_say_why_there_are_none() {
        let taken = (Scheme::Http, Err("127.0.0.1:80 is held by pid 7 (nginx)".to_owned()));
        let none = listening(std::slice::from_ref(&taken), &NONE);
        assert_eq!(none.url("a.test"), None);
        assert!(none.reason.unwrap().contains("held by pid 7 (nginx)"));
        let held = |port| Ok(Held { port, instead: None });
        let both = listening(&[taken, (Scheme::Https, held(8443))], &NONE);
        assert_eq!(both.url("a.test").as_deref(), Some("https://a.test:8443"));
        assert_eq!(
            listening(&[(Scheme::Http, held(8088))], &NONE).url("a.test").as_deref(),
            Some("http://a.test:8088")
        );
    }
}
