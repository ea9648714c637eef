use super::elsewhere;
use super::hosts::Hosts;
use super::mover::{Mover, alone, interruption};
use crate::args::PlacementMove;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::document::{Document, Registry};
use stado_fleet::edit::{self, Claim};
use stado_fleet::name::TargetName;
use stado_fleet::placement::{Entry, Journal, PlacementError, Profile, active_host, drive, new_claim};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// `placement move`.
pub(crate) async fn movement(args: PlacementMove, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let mut words = vec!["move", "--to-host", args.to_host.as_str()];
    words.extend(args.json.then_some("--json"));
    // A service is never an option, whatever it is called.
    words.extend(["--"].into_iter().chain(args.services.iter().map(String::as_str)));
    if let Some(done) = elsewhere::run(&fleet, &words).await? {
        return Ok(done);
    }
    let scene = Scene::read(&fleet).await?;
    let profile = Profile::of_services(&scene.document, &args.services).map_err(PlacementError::from)?;
    profile.host(&args.to_host)?;
    scene.nothing_active()?;
    let from = active_host(&scene.document, &profile)?;
    if from == args.to_host {
        return already(&profile, &from, args.json);
    }
    let _alone = alone(&fleet.host.stado_home)?;
    let mut mover = scene.mover(&fleet, &profile, new_claim(&profile.name, &from, &args.to_host), interruption()?);
    let entry = Entry::new(mover.claim.clone());
    drive::forward(&mut mover, entry).await?;
    moved(&mover, args.json)
}

/// The registry as a placement verb reads it: from its authority, never from a copy.
pub(super) struct Scene {
    pub(super) document: Document,
    pub(super) registry: Arc<Registry>,
    pub(super) version: stado_fleet::name::StoreVersion,
    me: Option<TargetName>,
}

impl Scene {
    pub(super) async fn read(fleet: &Fleet) -> Result<Self, Failure> {
        let snapshot = fleet.read(false).await?.snapshot;
        let registry = Arc::clone(&snapshot.valid.registry);
        let me = fleet.me(&registry)?;
        Ok(Self { document: snapshot.valid.document.clone(), registry, version: snapshot.store_version, me })
    }

    /// Refuses as a claim would, before anything is prepared.
    pub(super) fn nothing_active(&self) -> Result<(), Failure> {
        let nobody = Claim {
            id: String::new(),
            profile: String::new(),
            from_host: String::new(),
            to_host: String::new(),
            started_at: String::new(),
        };
        edit::claim(&self.document, &nobody)?;
        Ok(())
    }

    pub(super) fn hosts<'f>(&self, fleet: &'f Fleet) -> Hosts<'f> {
        Hosts { fleet, registry: Arc::clone(&self.registry), me: self.me.clone(), without: None }
    }

    pub(super) fn mover<'f>(
        &self,
        fleet: &'f Fleet,
        profile: &Profile,
        claim: Claim,
        interrupted: Arc<AtomicBool>,
    ) -> Mover<'f> {
        Mover {
            fleet,
            hosts: self.hosts(fleet),
            claim,
            profile: profile.clone(),
            version: Some(self.version.clone()),
            committed: None,
            journal: Journal::below(&fleet.host.stado_home),
            interrupted,
            furthest: None,
        }
    }
}

/// Says that it was moved.
pub(super) fn moved(mover: &Mover<'_>, json: bool) -> Verb {
    let Claim { id, profile, from_host, to_host, .. } = &mover.claim;
    if json {
        ui::json(&json!({
            "status": "moved", "transaction_id": id, "profile": profile, "from_host": from_host, "to_host": to_host,
            "registry_generation": mover.committed,
        }))?;
    } else {
        let generation = mover.committed.as_ref().map_or("-", |version| version.as_str());
        ui::line(format_args!("moved {profile} from {from_host} to {to_host} generation={generation}"))?;
    }
    Ok(Outcome::Done)
}

/// Says that there was nothing to move.
pub(super) fn already(profile: &Profile, host: &str, json: bool) -> Verb {
    if json {
        ui::json(&json!({"status": "already_placed", "profile": profile.name, "host": host}))?;
    } else {
        ui::line(format_args!("{} is already placed on {host}", profile.name))?;
    }
    Ok(Outcome::Done)
}
