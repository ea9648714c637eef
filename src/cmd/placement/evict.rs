use super::elsewhere;
use super::movement::{Scene, already, moved};
use super::mover::{alone, interruption};
use crate::args::PlacementEvict;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::fault::Class;
use stado_fleet::placement::{Entry, PlacementError, Profile, Step, active_host, drive, new_claim, shell, units};
use std::time::Duration;

/// For a host that is asked what runs there, or told to stop it.
const ACT: Duration = Duration::from_secs(900);

/// `placement evict`: a service that is placed on the host moves, with its profile, to the first of the other hosts that can
/// take it. One that is placed elsewhere and runs here all the same is stopped.
pub(crate) async fn evict(args: PlacementEvict, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let mut words = vec!["evict", "--host", args.host.as_str()];
    words.extend(args.json.then_some("--json"));
    words.extend(["--", args.service.as_str()]);
    if let Some(done) = elsewhere::run(&fleet, &words).await? {
        return Ok(done);
    }
    let scene = Scene::read(&fleet).await?;
    let profile = Profile::with_service(&scene.document, &args.service).map_err(PlacementError::from)?;
    profile.host(&args.host)?;
    scene.nothing_active()?;
    let active = active_host(&scene.document, &profile)?;
    let _alone = alone(&fleet.host.stado_home)?;
    if active != args.host {
        return left_over(&fleet, &scene, &profile, &args, &active).await;
    }
    let interrupted = interruption()?;
    let mut refused: Option<Failure> = None;
    for to in profile.hosts.keys().filter(|host| **host != active) {
        let mut mover = scene.mover(&fleet, &profile, new_claim(&profile.name, &active, to), interrupted.clone());
        let entry = Entry::new(mover.claim.clone());
        match drive::forward(&mut mover, entry).await {
            Ok(()) => return moved(&mover, args.json),
            // Nothing was touched yet: the next host may be able to.
            Err(error)
                if mover.furthest == Some(Step::Preflight) && !error.uncertain && error.class != Class::Moved =>
            {
                ui::note(format_args!("{} cannot go to {to}: {error}", profile.name));
                refused = Some(error.into());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(refused.unwrap_or_else(|| Failure::refused(format!("{} has no other host than {active}", profile.name))))
}

/// What runs on a host where it is not placed is stopped, and kept from starting with it.
async fn left_over(fleet: &Fleet, scene: &Scene, profile: &Profile, args: &PlacementEvict, active: &str) -> Verb {
    let hosts = scene.hosts(fleet);
    let leaving = profile.units(&args.host, &profile.stop_order)?;
    let running = hosts.run(&args.host, &units::running(&leaving), ACT, "looking").await?;
    let script = units::disable(&leaving) + &units::stop(&leaving);
    hosts.run(&args.host, &shell::alone(&script), ACT, "evicting").await?;
    let running: Vec<&str> = running.lines().collect();
    if running.is_empty() {
        return already(profile, active, args.json);
    }
    if args.json {
        ui::json(&json!({
            "status": "evicted", "profile": profile.name, "host": args.host, "stopped": running, "active_host": active,
        }))?;
    } else {
        let stopped = running.join(", ");
        ui::line(format_args!("stopped {stopped} on {}; {} is placed on {active}", args.host, profile.name))?;
    }
    Ok(Outcome::Done)
}
