use super::elsewhere;
use super::movement::Scene;
use super::mover::{Mover, alone, interruption};
use crate::args::PlacementRecover;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::{Value, json};
use stado_fleet::edit::{self, Claim};
use stado_fleet::placement::{Ended, Entry, Journal, Profile, Step, Wish, drive};

/// `placement recover`: every transaction that was cut off comes to its end.
pub(crate) async fn recover(args: PlacementRecover, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let mut words = vec!["recover"];
    words.extend(args.undo.then_some("--undo"));
    words.extend(args.leave_down.then_some("--leave-down"));
    words.extend(args.without.iter().flat_map(|host| ["--without", host.as_str()]));
    words.extend(args.json.then_some("--json"));
    if let Some(done) = elsewhere::run(&fleet, &words).await? {
        return Ok(done);
    }
    let _alone = alone(&fleet.host.stado_home)?;
    let journal = Journal::below(&fleet.host.stado_home);
    let interrupted = interruption()?;
    let mut ended = Vec::new();
    for (entry, claimed) in open(&Scene::read(&fleet).await?, &journal)? {
        // Each end writes the registry.
        let scene = Scene::read(&fleet).await?;
        let Some(profile) = Profile::named(&scene.document, &entry.claim.profile) else {
            if claimed {
                let sentence = format!("placement profile \"{}\" is not declared any more", entry.claim.profile);
                return Err(Failure::config(sentence));
            }
            journal.remove(&entry.claim.id)?;
            continue;
        };
        lost_source(&args, &entry, claimed)?;
        let mut mover = scene.mover(&fleet, &profile, entry.claim.clone(), interrupted.clone());
        mover.hosts.without.clone_from(&args.without);
        let undo = args.undo || args.without.as_ref() == Some(&entry.claim.to_host);
        let how = drive::recover(&mut mover, entry, claimed, Wish { undo, leave_down: args.leave_down }).await?;
        ended.push(told(&mover, how, args.json)?);
    }
    if args.json {
        ui::json(&json!({"recovered": ended}))?;
    } else if ended.is_empty() {
        ui::line("nothing to recover: no placement transaction is active")?;
    }
    Ok(Outcome::Done)
}

/// Claims of the registry first, then what the journal alone still knows.
fn open(scene: &Scene, journal: &Journal) -> Result<Vec<(Entry, bool)>, Failure> {
    let mut all: Vec<(Entry, bool)> = Vec::new();
    for claim in edit::claims(&scene.document) {
        let entry = journal.read(&claim.id).unwrap_or_else(|error| {
            ui::note(format_args!("{error}; everything that may have been done is undone"));
            None
        });
        all.push((entry.unwrap_or_else(|| Entry::unrecorded(claim)), true));
    }
    let known: Vec<String> = all.iter().map(|(entry, _)| entry.claim.id.clone()).collect();
    all.extend(journal.entries().into_iter().filter(|e| !known.contains(&e.claim.id)).map(|entry| (entry, false)));
    Ok(all)
}

/// Going back without the source would leave the services nowhere.
fn lost_source(args: &PlacementRecover, entry: &Entry, claimed: bool) -> Result<(), Failure> {
    let Claim { from_host, profile, .. } = &entry.claim;
    let goes_back = claimed && (args.undo || entry.back || entry.step < Step::RetireSource);
    if goes_back && args.without.as_ref() == Some(from_host) {
        return Err(Failure::refused(format!(
            "{profile} and its state are on {from_host}, and this transaction can only go back there; it ends when the host \
             is reached again, or with --leave-down, which leaves them down there"
        )));
    }
    Ok(())
}

fn told(mover: &Mover<'_>, how: Ended, json: bool) -> Result<Value, Failure> {
    let Claim { id, profile, from_host, to_host, .. } = &mover.claim;
    if !json {
        match how {
            Ended::Moved => ui::line(format_args!("finished: {profile} is on {to_host}, transaction {id}"))?,
            Ended::Back => ui::line(format_args!("undone: {profile} is on {from_host}, transaction {id}"))?,
        }
    }
    let status = if how == Ended::Moved { "moved" } else { "restored" };
    Ok(json!({
        "status": status, "transaction_id": id, "profile": profile, "from_host": from_host, "to_host": to_host,
        "registry_generation": mover.committed,
    }))
}
