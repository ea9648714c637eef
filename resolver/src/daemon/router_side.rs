//! The HTTP router of this daemon: its ports are bound before the control socket answers. One that cannot be bound is unserved
//! with its holder, and tried again; nothing else waits for it (design, rule 1).
use super::outside::Outside;
use super::part::{Part, Place, Slot};
use super::router_ports::{Certificates, Ports, open};
use crate::conn;
use crate::http::tls::{LoadError, Tls};
use crate::http::{HttpConfig, HttpContext, Index, Inherited, Listening, Observer, Router, Scheme, Shaded, follow};
use crate::mesh::Mesh;
use futures_util::future::join_all;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A running router: one part for each port.
pub(super) struct RouterSide {
    mesh: Arc<Mesh>,
    parts: Vec<Part<Router>>,
    inherited: Inherited,
    stop: DropGuard,
}

impl RouterSide {
    /// Binds what can be bound, and goes on trying the rest. Must run inside a runtime.
    ///
    /// # Errors
    /// The certificate pair that was asked for by name does not load, and there is no fleet whose state file could say so.
    pub(super) fn start(
        config: &HttpConfig,
        inherited: &Inherited,
        mesh: &Arc<Mesh>,
        conn: conn::Context,
        outside: Option<&Outside>,
    ) -> Result<Self, LoadError> {
        let (tls, refused) = certificates(config, outside)?;
        let (observer, unwritten) = Observer::start(config.access.as_ref());
        if let Some(why) = &unwritten {
            tracing::warn!(target: "stado::mesh", error = why, "access_log_not_written");
        }
        let fleet = outside.and_then(|outside| outside.view.clone());
        let stop = CancellationToken::new();
        if let Some(fleet) = &fleet {
            follow(fleet.held.clone(), mesh.sites(), stop.clone());
        }
        let index = Index::new(mesh, conn.ledger.clone(), fleet);
        let own = Some(Arc::new(index) as _);
        let context = Arc::new(HttpContext::new(mesh.sites().routes(), conn, Arc::new(observer), own, config.limits));
        let said = refused.iter().cloned().chain(unwritten).collect();
        let certificates = Certificates { tls: tls.clone(), refused };
        let ports = Ports::new(mesh, certificates, inherited.clone(), outside.cloned(), said);
        ports.follow_shaded(stop.clone());
        ports.follow_certificates(stop.clone());
        let wanted = [(Scheme::Http, config.http), (Scheme::Https, config.https.filter(|_| tls.is_some()))];
        let wanted = wanted.into_iter().filter_map(|(scheme, asked)| Some((scheme, asked?)));
        let parts = wanted.map(|(scheme, asked)| part(scheme, asked, &ports, &context, outside)).collect();
        for at in inherited.left() {
            tracing::warn!(target: "stado::mesh", bind = %at, "inherited_socket_not_used");
        }
        Ok(Self { mesh: Arc::clone(mesh), parts, inherited: inherited.clone(), stop: stop.drop_guard() })
    }

    /// All listeners, with what is spoken there, to hand them over to another process.
    pub(super) fn lend(&self) -> Vec<(SocketAddr, Vec<conn::Lent>)> {
        self.parts.iter().filter_map(|part| part.slot().with(Router::lend)).flatten().collect()
    }

    /// Which of them came from a service manager.
    pub(super) fn passed(&self) -> Vec<SocketAddr> {
        self.inherited.passed()
    }

    /// Connections of clients now.
    pub(super) fn connections(&self) -> usize {
        self.parts.iter().filter_map(|part| part.slot().with(Router::connections)).sum()
    }

    /// Another process has the listeners: stops accepting. Answers and streams go on; what is left of the routers says how
    /// many.
    pub(super) async fn leave(self) -> Vec<Router> {
        drop((self.stop, self.inherited.take_kept()));
        let routers = join_all(self.parts.into_iter().map(Part::take)).await;
        let leaving = routers.into_iter().flatten().map(|mut router| async move {
            drop(router.release().await);
            router
        });
        join_all(leaving).await
    }

    /// Stops accepting at once; answers and streams may go on for `grace`.
    pub(super) async fn close(self, grace: Duration) {
        drop(self.stop);
        self.mesh.set_router(Listening::none("the daemon is stopping"));
        let routers = join_all(self.parts.into_iter().map(Part::take)).await;
        join_all(routers.into_iter().flatten().map(|router| router.close(grace))).await;
    }
}

/// What is loaded, and why HTTPS is not served although it was asked for.
fn certificates(
    config: &HttpConfig,
    outside: Option<&Outside>,
) -> Result<(Option<Arc<Tls>>, Option<String>), LoadError> {
    match Tls::load(config.tls.clone()) {
        Ok(tls) => Ok((tls.map(Arc::new), None)),
        Err(error) => match outside {
            None => Err(error),
            Some(outside) => {
                let place = Place { what: "https", bind: config.https.map(|at| at.to_string()).unwrap_or_default() };
                outside.not_served(&place, &format!("{error}; put it right and run `stado resolver restart`"));
                tracing::warn!(target: "stado::mesh", error = %error, "https_not_served");
                Ok((None, Some(error.to_string())))
            }
        },
    }
}

fn part(
    scheme: Scheme,
    asked: SocketAddr,
    ports: &Arc<Ports>,
    context: &Arc<HttpContext>,
    outside: Option<&Outside>,
) -> Part<Router> {
    let (ports, context) = (Arc::clone(ports), Arc::clone(context));
    let attempt = move || open(scheme, asked, &ports, &context);
    let first = attempt();
    let place = Place { what: scheme.as_str(), bind: asked.to_string() };
    Part::start(Slot::new(), first, place, outside.cloned(), move || std::future::ready(attempt()))
}

/// What a person is told of a service that is not reached by hostname.
pub(super) fn sentence(shaded: &Shaded) -> String {
    let consumer = shaded.consumer.as_deref().map(|consumer| format!(" for consumer {consumer}")).unwrap_or_default();
    format!("the {} adapter{consumer} is not reached by hostname: {}", shaded.service, shaded.reason)
}
