//! `fleet leave`.
use super::start;
use crate::args::FleetLeave;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::authority::{RemoteAuthority, Source};
use stado_fleet::fault::{Blame, Class};
use stado_fleet::forwards::Forwards;
use stado_fleet::join::forget;
use stado_fleet::link::{ExecLimits, Stage};
use std::time::Duration;

const LIMITS: ExecLimits = ExecLimits { stdout: 1 << 20, deadline: Duration::from_secs(60) };

/// `fleet leave`: first the registry, which shuts this host out everywhere; then what is kept here.
pub(crate) async fn leave(args: FleetLeave, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let source = fleet.source().await?;
    let copy = fleet.copy();
    let told = match &source {
        Source::Store(store) => {
            if !args.here && store.read().await?.is_some() {
                return Err(Failure::refused(
                    "this host keeps the registry: promote another host first (`stado registry promote` there), which then can \
                     let this one go",
                ));
            }
            false
        }
        Source::Remote(authority) => !args.here && ask(&fleet, authority).await?,
    };
    if let Some(copy) = &copy {
        remove_markers(&fleet, copy);
    }
    forget(&fleet.host.stado_home).map_err(Failure::config)?;
    let restarted = start::again(env).await?;
    if args.json {
        ui::json(&json!({"left": copy.is_some(), "registry_told": told, "resolver_restarted": restarted}))?;
        return Ok(Outcome::Done);
    }
    match (copy.is_some() || told, told) {
        (true, true) => ui::line("this host has left its fleet; no other host takes its key any more")?,
        (true, false) => ui::line(
            "this host has forgotten its fleet; as long as the registry names it (`stado registry host remove` on another host) \
             its key is taken there",
        )?,
        (false, _) => ui::line("this host is in no fleet")?,
    }
    Ok(Outcome::Done)
}

/// Asks the authority to let this host go; `true` when the registry names it no more.
async fn ask(fleet: &Fleet, authority: &RemoteAuthority) -> Result<bool, Failure> {
    let verb = authority.verb("fleet leave");
    match fleet.link.exec(&authority.target, &authority.paths, &verb, &[], LIMITS).await {
        Ok(output) if output.status == Some(0) => Ok(true),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim();
            let said = said.strip_prefix("Error: ").unwrap_or(said);
            Err(Failure::refused(format!("{} does not let this host go: {said}", authority.target)))
        }
        // Taken out before, by a run that was cut here or by somebody else.
        Err(e) if e.stage == Stage::Auth => {
            ui::note(format_args!(
                "{} does not take this host's key any more: the registry has let it go",
                authority.target
            ));
            Ok(true)
        }
        Err(e) => Err(Failure::new(
            Class::InfraDown,
            Blame::Remote,
            format!(
                "{} was not reached, so that the registry goes on naming this host: {}; try later, or forget the fleet here alone \
                 with --here",
                authority.target,
                e.causes()
            ),
        )),
    }
}

/// Programs that read a marker after this would find an address that nobody serves.
fn remove_markers(fleet: &Fleet, copy: &stado_fleet::last_good::Copy) {
    let forwards = Forwards::new(&fleet.host.forwards_dir);
    let directory = copy.snapshot.valid.registry.directory.as_ref();
    for service in directory.iter().flat_map(|directory| directory.services.keys()) {
        let _ = std::fs::remove_file(forwards.marker(service.as_str()));
    }
}
