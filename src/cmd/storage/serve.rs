use crate::args::StorageServe;
use crate::cmd::until_stopped;
use crate::config::{Env, FleetFile, HostConfig, ObjectFlags, object_config};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_resolver::api::object::ObjectServer;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How long answers under way may take after the stop.
const GRACE: Duration = Duration::from_secs(10);

/// `storage serve`: the object API over this host's local store.
pub(crate) async fn serve(args: StorageServe, env: &Env) -> Verb {
    let host = HostConfig::read(env, None)?;
    let file = FleetFile::find(env)?;
    if args.bind.is_none() && file.text("object_api.bind")?.is_none() {
        return Err(Failure::usage(
            "storage serve needs the address it listens on: --bind 127.0.0.1:PORT, or object_api.bind in the configuration",
        ));
    }
    let flags = ObjectFlags { bind: args.bind, tls: args.tls.pair() };
    let config = object_config(&file, env, &host, flags)?;
    let served = config.served().map_err(Failure::config)?;
    let names = served.access.names().join(", ");
    let listener = TcpListener::bind(config.bind).await.map_err(|e| cannot_listen(config.bind, &e))?;
    let server = ObjectServer::start(Arc::new(listener), served).map_err(|e| Failure::config(e.to_string()))?;
    let (url, place) = (config.url(server.bind()), config.root.display());
    ui::line(format_args!("object API at {url} serves {place} (namespaces: {names})"))?;
    until_stopped().await?;
    server.close(GRACE).await;
    Ok(Outcome::Done)
}

/// The sentence for an address that is not to be had.
pub(crate) fn cannot_listen(bind: std::net::SocketAddr, error: &std::io::Error) -> Failure {
    let port = bind.port();
    Failure::here(format!("cannot listen on {bind}: {error}; another process may hold it: lsof -nP -iTCP:{port}"))
}
