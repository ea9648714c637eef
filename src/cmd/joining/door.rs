//! `fleet door`: the gate's closed table for hosts that come in over sshd. sshd runs it in place of whatever they ask for.
use super::here;
use crate::args::FleetDoor;
use crate::cmd::fleet::Fleet;
use crate::cmd::run;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_fleet::authority::Source;
use stado_fleet::document::{Document, Registry};
use stado_fleet::join::{Account, Presented, Shelf, admit, strike};
use stado_fleet::name::TargetName;
use stado_fleet::validate::validate;
use stado_resolver::gate;
use std::io::Read;
use std::sync::Arc;

/// What a host that joins says of itself.
const CANDIDATE: u64 = 64 << 10;

/// `fleet door`: which key came in is said by the line of `authorized_keys` that names this command; what it asks for by sshd.
/// The verb that is to be run here instead; `None` when it was run.
pub(crate) async fn door(args: &FleetDoor, env: &Env) -> Result<Option<Vec<String>>, Failure> {
    let fleet = Fleet::open(env)?;
    let asked = env.text("SSH_ORIGINAL_COMMAND")?.unwrap_or_default();
    let registry = registry(&fleet).await?;
    let member = registry.as_deref().and_then(|registry| registry.host_of_key(&args.key).cloned());
    let guest = member.is_none();
    if guest && Shelf::new(&fleet.host.stado_home).read()?.of_key(&args.key).is_none() {
        return Err(Failure::refused("this key may no longer come in: the registry names no host that has it"));
    }
    let argv = match gate::admitted(asked.as_bytes(), guest) {
        Ok(argv) => argv,
        Err(sentence) => {
            ui::raw_error(sentence.as_bytes());
            return Ok(Some(Vec::new()));
        }
    };
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    match (words.as_slice(), member) {
        (["fleet", "admit"], _) => take_in(&fleet, &args.key).await?,
        (["fleet", "leave"], Some(target)) => let_go(&fleet, &target).await?,
        // What it opens is this host's, and no more than the directory gives it.
        (["resolver", "relay"], Some(_)) => return Ok(Some([argv, vec!["--key".into(), args.key.clone()]].concat())),
        _ => return Ok(Some(argv)),
    }
    Ok(None)
}

/// Runs what [`door`] found.
pub(crate) fn run_verb(found: Result<Option<Vec<String>>, Failure>, env: &Env) -> Verb {
    match found? {
        None => Ok(Outcome::Done),
        Some(argv) if argv.is_empty() => Ok(Outcome::Child(u8::try_from(gate::REFUSED).unwrap_or(1))),
        Some(argv) => run::again(&argv, env),
    }
}

/// `fleet admit` by hand.
pub(crate) fn admit_by_hand() -> Verb {
    Err(Failure::usage(
        "`fleet admit` is run by a host that joins, over the gate or by `fleet door`; see `stado fleet join`",
    ))
}

/// The registry as this host has it, without asking anybody.
async fn registry(fleet: &Fleet) -> Result<Option<Arc<Registry>>, Failure> {
    match fleet.source().await? {
        Source::Store(store) => {
            let Some(stored) = store.read().await? else { return Ok(None) };
            Ok(Some(validate(Document::parse(stored.bytes)?)?.registry))
        }
        Source::Remote(_) => Ok(fleet.copy().map(|copy| copy.snapshot.valid.registry.clone())),
    }
}

async fn take_in(fleet: &Fleet, invitation: &str) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(CANDIDATE).read_to_end(&mut bytes);
    read.map_err(|e| Failure::here(format!("cannot read what the host says of itself: {e}")))?;
    let candidate = serde_json::from_slice(&bytes)
        .map_err(|e| Failure::usage(format!("what the host says of itself cannot be read: {e}")))?;
    let from = fleet.host.ssh_client.clone().unwrap_or_default();
    let presented = Presented { invitation: invitation.to_owned(), from, candidate };
    let shelf = Shelf::new(&fleet.host.stado_home);
    let welcome = admit(&shelf, &fleet.source().await?, &fleet.link, &presented, jiff::Timestamp::now()).await?;
    // The host comes back at once, with its own key.
    keep_lines(fleet).await?;
    ui::line(serde_json::to_string(&welcome).map_err(|e| Failure::here(e.to_string()))?)
}

async fn let_go(fleet: &Fleet, target: &TargetName) -> Result<(), Failure> {
    let struck = strike(&fleet.source().await?, &fleet.link, target).await?;
    keep_lines(fleet).await?;
    ui::line(serde_json::json!({"left": target, "changed": struck}))
}

/// Brings the account's `authorized_keys` up to date, where hosts come in over sshd.
pub(super) async fn keep_lines(fleet: &Fleet) -> Result<(), Failure> {
    let (Some(file), Some(registry)) = (&fleet.host.sshd_keys, registry(fleet).await?) else { return Ok(()) };
    let Some(me) = fleet.me(&registry)? else { return Ok(()) };
    let book = Shelf::new(&fleet.host.stado_home).read()?;
    Account::new(file, &here::program()?).keep(&registry, &me, &book)?;
    Ok(())
}
