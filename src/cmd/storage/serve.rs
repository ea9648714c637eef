use crate::args::StorageServe;
use crate::config::{Backend, Env, FleetFile, HostConfig, object_access};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_resolver::api::object::{ObjectServer, Objects};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// How long answers under way may take after the stop.
const GRACE: Duration = Duration::from_secs(10);

/// `storage serve`: the object API over this host's local store.
pub(crate) async fn serve(args: StorageServe, env: &Env) -> Verb {
    let host = HostConfig::read(env, None)?;
    if host.storage.backend != Backend::Local {
        return Err(Failure::config(format!(
            "an object API serves a directory of this host, and storage.backend is {}; run it where that store is, or set \
             storage.backend to local",
            host.storage.backend.word()
        )));
    }
    let file = FleetFile::find(env)?;
    let access = object_access(&file, env)?;
    let bind = address(&args, &file)?;
    let names = access.names().join(", ");
    let objects = Objects::open(&host.storage.local_path)?.written_by(host.writer());
    let listener = TcpListener::bind(bind).await;
    let listener = listener.map_err(|e| {
        Failure::here(format!(
            "cannot listen on {bind}: {e}; another process may hold it: lsof -nP -iTCP:{}",
            bind.port()
        ))
    })?;
    let server = ObjectServer::start(listener, objects, access).map_err(|e| Failure::config(e.to_string()))?;
    let place = host.storage.local_path.display();
    ui::line(format_args!("object API at http://{} serves {place} (namespaces: {names})", server.bind()))?;
    told_to_stop().await?;
    server.close(GRACE).await;
    Ok(Outcome::Done)
}

fn address(args: &StorageServe, file: &FleetFile) -> Result<SocketAddr, Failure> {
    if let Some(bind) = args.bind {
        return Ok(bind);
    }
    let declared = file.text("object_api.bind")?.ok_or_else(|| {
        Failure::usage(
            "storage serve needs the address it listens on: --bind 127.0.0.1:PORT, or object_api.bind in the configuration",
        )
    })?;
    declared.parse().map_err(|_| Failure::config(format!("object_api.bind is {declared:?}, which is no IP:PORT")))
}

async fn told_to_stop() -> Result<(), Failure> {
    let listen = |kind| signal(kind).map_err(|e| Failure::here(format!("cannot listen for signals: {e}")));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
