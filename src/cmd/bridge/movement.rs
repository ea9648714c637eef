use super::{number, shown};
use crate::args::MoveArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::remote::{Remote, quoted};
use crate::cmd::write;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::authority::Answer;
use stado_fleet::edit::bridge;
use stado_fleet::fault::{Blame, Class};
use stado_fleet::link::ExecLimits;
use std::time::Duration;

/// How long the host may take to say whether it has the service.
const PATIENCE: Duration = Duration::from_secs(20);
const ANSWER: usize = 64 << 10;

/// `service move`: new connections of every host go to the other publisher. It has to have a backend there.
pub(crate) async fn movement(args: MoveArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(false).await?;
    // Refused before anybody is asked, and in the same words.
    let planned = bridge::move_published(&answer.snapshot.valid.document, &args.service, &args.to)?;
    if planned.edited.changed && !args.unchecked {
        ready(&fleet, &answer, &args, &planned.mesh).await?;
    }
    let edit = |held: &_, _: &str| bridge::move_published(held, &args.service, &args.to);
    let written = write::retried(&fleet, edit, |done| &done.edited).await?;
    let (done, generation) = (&written.done, written.done.edited.generation);
    if args.json {
        ui::json(&json!({
            "service": args.service, "from_host": done.from, "to_host": args.to, "changed": done.edited.changed,
            "generation": number(generation),
        }))?;
        return Ok(Outcome::Done);
    }
    let (service, to, generation) = (&args.service, &args.to, shown(generation));
    if done.edited.changed {
        ui::line(format_args!("moved {service} from {} to {to} generation={generation}", done.from))?;
    } else {
        ui::line(format_args!("{service} is on {to} already; nothing written"))?;
    }
    Ok(Outcome::Done)
}

/// Asks the destination's own daemon.
async fn ready(fleet: &Fleet, answer: &Answer, args: &MoveArgs, mesh: &str) -> Result<(), Failure> {
    let registry = &answer.snapshot.valid.registry;
    let remote = Remote::of(fleet, registry, &args.to)?;
    let here = std::env::current_exe().ok().filter(|_| remote.here);
    let declared = registry.targets.get(&remote.name).and_then(|target| target.stado_command.clone());
    let command = here.map(|path| path.display().to_string()).or(declared).unwrap_or_else(|| "stado".to_owned());
    let line = format!("{} service resolve {} --raw", quoted(&command), quoted(mesh));
    let output = remote.run(&line, b"", ExecLimits { stdout: ANSWER, deadline: PATIENCE }).await?;
    if output.status == Some(0) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason").trim();
    let sentence = format!(
        "{} is not ready on {}: its daemon does not give out {mesh} ({said}); nothing was moved, and --unchecked moves it all \
         the same",
        args.service, args.to
    );
    Err(Failure::new(Class::InfraDown, Blame::Remote, sentence))
}
