//! Reaching what stands behind a hostname.
use super::HttpContext;
use super::far::Far;
use super::pool::Key;
use super::site::{Protocol, Site};
use super::socket::Socket;
use super::tls::backend;
use crate::conn::{Asker, DialError, Upstream, dial};
use tokio::net::TcpStream;
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

/// A new connection, within the site's budget.
pub(super) async fn reach(site: &Site, context: &HttpContext) -> Result<Reached, DialError> {
    let answered_last = context.pool.family(site);
    let asker = Asker {
        id: &site.frontend,
        budget: site.budget,
        answered_last: &answered_last,
        own: &context.conn.own,
        dialer: &*context.conn.dialer,
    };
    let far = match (dial(&site.backend, &asker).await?, site.protocol) {
        (Upstream::Local(stream), Protocol::Https) => over_tls(stream, site).await?,
        (upstream, _) => Far::from(upstream),
    };
    Ok(Reached { far, key: Key::of(site), used: false })
}

/// TLS on an open connection, within the same budget again.
async fn over_tls(stream: TcpStream, site: &Site) -> Result<Far, DialError> {
    let peer = stream.peer_addr().map_err(|error| DialError::Refused(vec![(site.frontend.bind, error)]))?;
    let socket = Socket::new(stream);
    match timeout(site.budget, backend::connect(socket.clone(), &site.host)).await {
        Ok(Ok(stream)) => Ok(Far::Stream(Box::pin(stream), Some(socket))),
        Ok(Err(error)) => Err(DialError::Refused(vec![(peer, error)])),
        Err(_) => Err(DialError::Silent(vec![peer], site.budget)),
    }
}
