//! `vault serve`.
use super::{dir, open};
use crate::args::VaultServe;
use crate::cmd::storage::cannot_listen;
use crate::cmd::{unless_stopped, until_stopped};
use crate::config::{Env, FleetFile, address, pair};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_resolver::api::Security;
use stado_resolver::api::vault::VaultServer;
use std::time::Duration;
use tokio::net::TcpListener;

/// How long answers under way may take after the stop.
const GRACE: Duration = Duration::from_secs(5);

/// `vault serve`: `POST /v1/items/read` and `/v1/items/list`.
pub(crate) async fn serve(args: VaultServe, env: &Env) -> Verb {
    let file = FleetFile::find(env)?;
    let bind = match args.bind {
        Some(bind) => bind,
        None => address(&file, "vault.bind")?.ok_or_else(|| {
            Failure::usage(
                "vault serve needs the address it listens on: --bind 127.0.0.1:PORT, or vault.bind in the configuration",
            )
        })?,
    };
    let files = match args.tls.pair() {
        Some(files) => Some(files),
        None => pair(&file, env, "vault.tls")?,
    };
    let security = files.map_or_else(|| Ok(Security::plain()), Security::tls)?;
    security.check("the vault", bind).map_err(|e| Failure::config(e.to_string()))?;
    let dir = dir(&args.place, env)?;
    let vault = unless_stopped(move |wanted| open(&dir, wanted)).await?;
    let (scheme, path) = (security.scheme(), vault.path().display().to_string());
    let listener = TcpListener::bind(bind).await.map_err(|e| cannot_listen(bind, &e))?;
    let server = VaultServer::start(listener, vault, security).map_err(|e| Failure::config(e.to_string()))?;
    ui::line(format_args!("vault at {scheme}://{} serves {path}", server.bind()))?;
    until_stopped().await?;
    server.close(GRACE).await;
    Ok(Outcome::Done)
}
