//! `fleet invite`.
use super::door;
use crate::args::FleetInvite;
use crate::cmd::fleet::Fleet;
use crate::config::{Env, format_duration, parse_duration};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::{SignedDuration, Timestamp};
use stado_fleet::document::Target;
use stado_fleet::join::{Invitation, Shelf, allowed};
use stado_fleet::ledger::Publisher;
use stado_fleet::name::TargetName;
use std::time::Duration;

/// Longer ones are keys, not invitations.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// `fleet invite`: the line goes to standard output, everything else to standard error.
pub(crate) async fn invite(args: FleetInvite, env: &Env) -> Verb {
    let valid = parse_duration(&args.valid).filter(|valid| !valid.is_zero() && *valid <= LONGEST);
    let valid =
        valid.ok_or_else(|| Failure::usage(format!("--valid {:?} must be a duration up to 7 days", args.valid)))?;
    let name = args
        .name
        .as_deref()
        .map(|text| text.parse::<TargetName>().map_err(|e| Failure::usage(format!("--name {text:?} {e}"))));
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(false).await?;
    allowed(&answer.snapshot.valid.document, "allow_invite").map_err(Failure::refused)?;
    let registry = &answer.snapshot.valid.registry;
    let directory = registry.directory.as_ref().ok_or_else(|| not_begun("the registry here names no authority"))?;
    let me = fleet.me(registry)?;
    if me.as_ref() != Some(&directory.authority_target) {
        return Err(Failure::refused(format!(
            "invitations are made on {}, the authority, which is asked when one is shown",
            directory.authority_target
        )));
    }
    let target = registry.targets.get(&directory.authority_target);
    let target = target
        .filter(|target| reachable(target))
        .ok_or_else(|| not_begun("the registry does not say by which key other hosts know this one"))?;
    let now = Timestamp::now();
    let expires = SignedDuration::try_from(valid).ok().and_then(|valid| now.checked_add(valid).ok());
    let expires = expires.ok_or_else(|| Failure::usage("--valid is too long"))?;
    let ways = target.paths.iter().map(|path| path.destination.clone()).collect();
    let authority = (target.name.clone(), directory.authority_command.clone());
    let invitation = Invitation::new(authority, ways, target.host_keys.clone(), expires, name.transpose()?);
    let invitation = invitation.map_err(Failure::here)?;
    Shelf::new(&fleet.host.stado_home).change(|book| book.add(&invitation, now))?;
    door::keep_lines(&fleet).await?;
    if let Some(why) = shut(&fleet) {
        ui::note(format_args!("nobody can join yet: {why}"));
    }
    let only = args.name.map(|name| format!(" {name}")).unwrap_or_default();
    ui::note(format_args!(
        "invitation {} lets one host{only} in within {}: run `stado fleet join` there and paste this line when it asks. Whoever has \
         the line can use it: send it as you would send a password",
        invitation.id,
        format_duration(valid)
    ));
    ui::line(invitation.reveal())?;
    Ok(Outcome::Done)
}

fn reachable(target: &Target) -> bool {
    !target.paths.is_empty() && !target.host_keys.is_empty()
}

fn not_begun(why: &str) -> Failure {
    Failure::config(format!("{why}: run `stado fleet init` here first"))
}

/// Why the gate does not take anybody in now.
fn shut(fleet: &Fleet) -> Option<String> {
    if fleet.host.sshd_keys.is_some() && fleet.host.gate_bind.is_none() {
        return None;
    }
    let publisher = fleet.publisher_if_readable();
    match &publisher {
        Publisher::Alive(state) => {
            let row = state.unserved.iter().find(|row| row.service == "gate");
            row.map(|row| format!("the gate of this host is not served: {}", row.reason))
        }
        _ => Some("no resolver runs here; `stado resolver serve` starts one".into()),
    }
}
