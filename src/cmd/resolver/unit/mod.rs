//! `resolver install`, `resolver uninstall`: the daemon as a unit of systemd or launchd (fleet contract §4.1, supervision).
mod launchd;
mod manager;
mod place;
mod systemd;

use crate::args::{InstallArgs, UninstallArgs};
use crate::config::{Env, HostConfig};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use manager::Told;
use place::Place;
use stado_fleet::disk::{self, Lock};
use std::path::{Path, PathBuf};

/// In the first lines of every unit that is ours to replace or remove.
const MARK: &str = "Written by `stado resolver install`; `stado resolver uninstall` removes it.";
/// Largest unit that is read.
const LARGEST: u64 = 1 << 20;
/// Beginnings of the variables that change what a daemon does.
const OURS: [&str; 3] = ["STADO_", "DEVMESH_", "WC_"];

/// What a unit says, for any manager.
struct Unit {
    /// Program and arguments.
    command: Vec<String>,
    /// Variables with their values.
    variables: Vec<(String, String)>,
    /// Account, in a unit of the machine's own manager.
    account: Option<String>,
    /// Home of that account, else of the caller.
    home: PathBuf,
}

/// `resolver install`.
pub(crate) async fn install(args: InstallArgs, env: &Env) -> Verb {
    let place = Place::find(&args.manager, env)?;
    let unit = unit(&args, &place, env)?;
    let text = place.text(&unit)?;
    if args.print {
        ui::print(&text)?;
        return Ok(Outcome::Done);
    }
    let before = ours(&place.file)?;
    write(&place, &unit, &text)?;
    left_out(&args, env).iter().for_each(ui::note);
    let changed = before.as_deref().is_some_and(|before| before != text);
    ui::line(format_args!("wrote {}", place.file.display()))?;
    if args.no_start {
        return Ok(Outcome::Done);
    }
    if let Some(sentence) = in_the_way(&place, before.is_some(), env)? {
        ui::note(sentence);
        return told(&place, manager::enable(&place, false).await);
    }
    told(&place, manager::enable(&place, true).await)?;
    if changed {
        ui::note(format_args!("the daemon that runs has its old unit until {}", place.restart()));
    }
    if let Some(hint) = place.hint() {
        ui::note(hint);
    }
    Ok(Outcome::Done)
}

/// As `resolver install`, for a verb that needs a daemon and can do without a manager. `false`: none runs for this account,
/// or it would run the daemon with other settings than are set here; then nothing is left of the attempt.
pub(crate) async fn installed(env: &Env) -> Result<bool, Failure> {
    let args = InstallArgs::default();
    if left_out(&args, env).is_some() || !manager::is_there() {
        return Ok(false);
    }
    let place = Place::find(&args.manager, env)?;
    let Ok(before) = ours(&place.file) else { return Ok(false) };
    let unit = unit(&args, &place, env)?;
    write(&place, &unit, &place.text(&unit)?)?;
    if matches!(manager::enable(&place, true).await, manager::Told::Done) {
        return Ok(true);
    }
    if before.is_none() {
        let _ = std::fs::remove_file(&place.file);
    }
    Ok(false)
}

/// `resolver uninstall`.
pub(crate) async fn uninstall(args: UninstallArgs, env: &Env) -> Verb {
    let place = Place::find(&args.manager, env)?;
    if ours(&place.file)?.is_none() {
        ui::line(format_args!("nothing is installed at {}", place.file.display()))?;
        return Ok(Outcome::Done);
    }
    let disabled = manager::disable(&place).await;
    if let Told::NoManager = &disabled {
        ui::note(format_args!("{} does not run here, so nothing had to be stopped there", place.manager_name()));
    } else {
        told(&place, disabled)?;
    }
    std::fs::remove_file(&place.file)
        .map_err(|error| Failure::here(format!("cannot remove {}: {error}", place.file.display())))?;
    told(&place, manager::forget(&place).await)?;
    ui::line(format_args!("removed {}", place.file.display()))?;
    Ok(Outcome::Done)
}

fn unit(args: &InstallArgs, place: &Place, env: &Env) -> Result<Unit, Failure> {
    let program =
        std::env::current_exe().map_err(|e| Failure::here(format!("this program's file is not known: {e}")))?;
    let program = program.to_str().ok_or_else(|| Failure::here(format!("{} is not UTF-8", program.display())))?;
    let mut command = vec![program.to_owned(), "resolver".into(), "serve".into()];
    command.extend(args.target.iter().flat_map(|target| ["--target".to_owned(), target.clone()]));
    command.extend(args.arguments.iter().cloned());
    let mut variables = Vec::new();
    for name in &args.variables {
        let value = env.text(name)?.ok_or_else(|| Failure::usage(format!("--env {name}: it is not set here")))?;
        variables.push((name.clone(), value));
    }
    let account = if place.system { Some(place::account(args, env)?) } else { None };
    let home = match &account {
        Some(account) => place::home_of(account)?,
        None => env.home()?,
    };
    Ok(Unit { command, variables, account, home })
}

/// The unit at `file`, when it is one of ours; a foreign one is neither replaced nor removed.
fn ours(file: &Path) -> Result<Option<String>, Failure> {
    let Some(bytes) = disk::read_unlinked(file, LARGEST)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if text.lines().take(4).any(|line| line.contains(MARK)) {
        return Ok(Some(text));
    }
    Err(Failure::refused(format!(
        "{} was not written by `stado resolver install`: move it away, or change it by hand",
        file.display()
    )))
}

fn write(place: &Place, unit: &Unit, text: &str) -> Result<(), Failure> {
    if !place.system {
        disk::private_dir(&unit.home.join(".stado/logs"))?;
    }
    disk::replace(&place.file, text.as_bytes())?;
    if place.system {
        // Anybody may ask the machine's manager what is in it.
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&place.file, std::fs::Permissions::from_mode(0o644))
            .map_err(|error| Failure::here(format!("cannot let others read {}: {error}", place.file.display())))?;
    }
    Ok(())
}

/// Variables of ours that are set here and that the daemon will not have.
fn left_out(args: &InstallArgs, env: &Env) -> Option<String> {
    let kept = |name: &str| args.variables.iter().any(|kept| kept == name);
    let names: Vec<&str> =
        env.names().filter(|name| OURS.iter().any(|ours| name.starts_with(ours)) && !kept(name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "set here, and not for the daemon: {}; write them into its configuration, or give each with --env NAME",
            names.join(", ")
        )
    })
}

/// A daemon that somebody started by hand holds what the unit's own would need.
fn in_the_way(place: &Place, installed: bool, env: &Env) -> Result<Option<String>, Failure> {
    if place.system || installed {
        return Ok(None);
    }
    let paths = HostConfig::read(env, None)?.published;
    let holder = Lock::holder(&paths.lock)?.map(|pid| pid.map_or_else(String::new, |pid| format!(" (pid {pid})")));
    Ok(holder.map(|pid| {
        format!("a resolver{pid} runs for this home already: end it with `stado resolver stop`, then {}", place.start())
    }))
}

/// A manager that does not run here is no failure: the unit is there when it does.
fn told(place: &Place, told: Told) -> Verb {
    match told {
        Told::Done => {}
        Told::NoManager => ui::note(format_args!(
            "{} does not run here, so it was told nothing; where it does, {}",
            place.manager_name(),
            place.start()
        )),
        Told::Refused(why) => return Err(Failure::here(why)),
    }
    Ok(Outcome::Done)
}
