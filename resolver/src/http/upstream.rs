//! Reaching what stands behind a hostname.
use super::HttpContext;
use super::far::Far;
use super::pool::Key;
use super::site::{Protocol, Site};
use super::socket::Socket;
use super::tls::backend;
use crate::conn::{self, Asker, Backend, DialError, Upstream, dial};
use stado_fleet::link::RemoteStream;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::time::timeout;

/// A connection for one request.
pub(super) struct Reached {
    pub(super) far: Far,
    pub(super) key: Option<Key>,
    /// It has carried other requests, so the backend may have closed it meanwhile.
    pub(super) used: bool,
}

/// A kept connection, if there is one. `surely`: see [`super::Pool::take`].
pub(super) fn kept(site: &Site, context: &HttpContext, surely: bool) -> Option<Reached> {
    let key = Key::of(site)?;
    let far = context.pool.take(&key, surely)?;
    Some(Reached { far, key: Some(key), used: true })
}

/// A new connection, to where the service is now: a host that was left may hear of the move before this one does.
pub(super) async fn reach(site: &Site, context: &HttpContext) -> Result<Reached, DialError> {
    match reach_there(site, context).await {
        Err(error) if error.may_be_old_news() => match Box::pin(moved(site, context)).await {
            Some(now) => reach_there(&now, context).await,
            None => Err(error),
        },
        reached => reached,
    }
}

/// The site in its new place, if the news of it comes in a moment.
async fn moved(from: &Site, context: &HttpContext) -> Option<Arc<Site>> {
    let found = || context.routes.find(&from.host).filter(|now| now.backend.is_elsewhere(&from.backend));
    conn::news(found).await
}

/// A new connection, within the site's budget.
pub(super) async fn reach_there(site: &Site, context: &HttpContext) -> Result<Reached, DialError> {
    let answered_last = context.pool.family(site);
    let asker = Asker {
        id: &site.frontend,
        budget: site.budget,
        answered_last: &answered_last,
        own: &context.conn.own,
        dialer: &*context.conn.dialer,
    };
    let far = match (dial(&site.backend, &asker).await?, site.protocol) {
        (Upstream::Local(stream), Protocol::Https) => {
            let peer = stream.peer_addr();
            let peer = peer.map_err(|error| DialError::Refused(vec![(site.frontend.bind, error)]))?;
            let socket = Socket::new(stream);
            Far::Stream(over_tls(socket.clone(), peer, site).await?, Some(socket))
        }
        (Upstream::Remote(stream), Protocol::Https) => Far::Stream(over_tls(stream, far_end(site), site).await?, None),
        (upstream, _) => Far::from(upstream),
    };
    Ok(Reached { far, key: Key::of(site), used: false })
}

/// The address on the other host, as errors name it.
fn far_end(site: &Site) -> SocketAddr {
    match &site.backend {
        Backend::Fleet(route) => route.endpoint.addr.candidates().first().copied().unwrap_or(site.frontend.bind),
        Backend::Local(_) | Backend::None(_) => site.frontend.bind,
    }
}

/// TLS on an open connection, within the same budget again.
async fn over_tls<S>(stream: S, peer: SocketAddr, site: &Site) -> Result<Pin<Box<dyn RemoteStream>>, DialError>
where
    S: RemoteStream + Unpin + 'static,
{
    match timeout(site.budget, backend::connect(stream, &site.host)).await {
        Ok(Ok(stream)) => Ok(Box::pin(stream)),
        Ok(Err(error)) => Err(DialError::Refused(vec![(peer, error)])),
        Err(_) => Err(DialError::Silent(vec![peer], site.budget)),
    }
}
