//! The object API as a part of the daemon: started like any other, its closed namespaces told like anything that is not served.
use super::config::FleetConfig;
use super::outside::Outside;
use super::part::{Part, Place, Slot};
use crate::api::object::{Closed, Config, ObjectServer};
use crate::conn::Bound;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// Its name among unserved things.
pub(super) const WHAT: &str = "object-api";

/// A running object API of the daemon.
#[derive(Debug)]
pub(super) struct ObjectsSide {
    pub(super) server: ObjectServer,
    pub(super) url: String,
    _told: Option<AbortOnDropHandle<()>>,
}

/// Where it is configured, on the listener that was handed over if it is the one.
pub(super) async fn start_objects(config: &FleetConfig, outside: &Outside, handed: Option<Bound>) -> Part<ObjectsSide> {
    let config = match &config.objects {
        None => return Part::none(),
        Some(Err(why)) => {
            let place = Place { what: WHAT, bind: "object_api.bind".into() };
            let why = format!("{why}; `stado resolver restart` reads the configuration again");
            // Trying again needs no other answer: it is given once.
            return Part::start(Slot::new(), Err(why), place, Some(outside.clone()), || {
                std::future::pending::<Result<ObjectsSide, String>>()
            });
        }
        Some(Ok(config)) => Arc::new(config.clone()),
    };
    let bind = config.bind;
    let place = Place { what: WHAT, bind: bind.to_string() };
    // Port 0 is any port: the one it was.
    let handed = handed.filter(|bound| bound.addr == bind || (bind.port() == 0 && bound.addr.ip() == bind.ip()));
    let listener = handed.and_then(|bound| bound.into_listeners().into_iter().next());
    let first = start(&config, outside, listener).await;
    let again = outside.clone();
    Part::start(Slot::new(), first, place, Some(outside.clone()), move || {
        let (config, outside) = (config.clone(), again.clone());
        async move { start(&config, &outside, None).await }
    })
}

async fn start(config: &Arc<Config>, outside: &Outside, listener: Option<TcpListener>) -> Result<ObjectsSide, String> {
    let work = config.clone();
    let served = tokio::task::spawn_blocking(move || work.served()).await.map_err(|e| e.to_string())??;
    let listener = match listener {
        Some(listener) => listener,
        None => TcpListener::bind(config.bind).await.map_err(|e| {
            format!("cannot listen: {e}; `lsof -nP -iTCP:{} -sTCP:LISTEN` names the holder", config.bind.port())
        })?,
    };
    let server = ObjectServer::start(Arc::new(listener), served).map_err(|e| e.to_string())?;
    let url = config.url(server.bind());
    outside.objects_at(&url);
    let told = server.closed().map(|closed| follow(closed, server.bind(), outside.clone()));
    tracing::info!(target: "stado::fleet", "stado object API at {url}");
    Ok(ObjectsSide { server, url, _told: told })
}

fn follow(mut closed: watch::Receiver<Closed>, bind: SocketAddr, outside: Outside) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            let now = closed.borrow_and_update().clone();
            outside.objects_closed(bind, &now);
            if closed.changed().await.is_err() {
                return;
            }
        }
    }))
}
