//! Asks the daemon, the container adapter, the router and the fleet's side, each for itself: one that does not answer is
//! part of the answer.
use super::conclude::{Fleet, Seen, Unanswered};
use crate::args::{DaemonArgs, StatusArgs};
use crate::client::{Api, Error};
use crate::cmd::mute::Mute;
use crate::cmd::resolver;
use crate::cmd::service::api as daemon_api;
use crate::config::{Env, HostConfig};
use crate::exit::Failure;
use stado_fleet::fault::Class;
use stado_fleet::wire::{Overview, Standing};

/// Looks everywhere at once.
pub(super) async fn look(args: &DaemonArgs, env: &Env) -> Result<Seen, Failure> {
    let api = daemon_api(args, env)?;
    let fleet = async { told(resolver::report(&StatusArgs::default(), env).await) };
    let (seen, fleet) = tokio::join!(daemon(&api, env), fleet);
    Ok(Seen { fleet, ..seen })
}

/// What the daemon says; nothing of the fleet's side.
pub(crate) async fn daemon(api: &Api, env: &Env) -> Seen {
    let (health, overview, refused, certificates) =
        tokio::join!(api.health(), overview(api), unless_unknown(api.refused()), unless_unknown(api.certificates()),);
    let health = match health {
        Ok(health) => Ok(health),
        Err(error) => Err(Unanswered { mute: Mute::behind(&error, env).await, why: error.to_string() }),
    };
    Seen {
        // An account without a name is left out.
        host: HostConfig::whoami(env).unwrap_or_default().trim_start_matches('@').to_owned(),
        socket: api.socket().display().to_string(),
        health,
        overview: overview.unwrap_or_default(),
        refused: refused.unwrap_or_default(),
        certificates: certificates.unwrap_or_default(),
        fleet: Fleet::None,
    }
}

/// What a daemon of an earlier version does not know, nobody can say.
async fn unless_unknown<T: Default>(asked: impl Future<Output = Result<T, Error>>) -> Option<T> {
    asked.await.ok()
}

/// Of a daemon of the first version: what its list says.
async fn overview(api: &Api) -> Option<Overview> {
    match api.overview().await {
        Ok(overview) => Some(overview),
        Err(Error::Api { status: 404 | 405, .. }) => {
            let services = api.list().await.ok()?.into_iter().map(|service| Standing {
                id: format!("mesh/{}", service.name),
                from: "mesh".into(),
                address: service.frontend.endpoint(),
                kind: service.kind,
                state: service.status,
                since: service.since.unwrap_or_default(),
                reason: service.reason.or(service.note).unwrap_or_default(),
                name: service.name,
                ..Standing::default()
            });
            Some(Overview { services: services.collect(), ..Overview::default() })
        }
        Err(_) => None,
    }
}

/// What `resolver status` says. A home without a fleet has nothing to say there.
pub(crate) fn told(report: Result<resolver::Report, Failure>) -> Fleet {
    match report {
        Ok(report) => Fleet::Told(Box::new(report)),
        Err(failure) if failure.class == Class::NotFound => Fleet::None,
        Err(failure) => Fleet::Unknown(failure.message),
    }
}
