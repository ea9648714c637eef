use crate::args::ImportArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::input;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_fleet::authority::{self, PushRequest};
use stado_fleet::edit::Overrides;
use stado_fleet::fault::Class;

/// `registry import`: founds a registry from a file. One that is there is never replaced: that is what `push` is for.
pub(crate) async fn import(args: ImportArgs, env: &Env) -> Verb {
    let absent = "0".parse().map_err(|e: stado_fleet::name::NameError| Failure::here(e.0))?;
    let request = PushRequest {
        bytes: input::read(&args.path, "registry import")?.into(),
        if_generation: Some(absent),
        overrides: Overrides::default(),
    };
    let fleet = Fleet::open(env)?;
    let source = fleet.source().await?;
    let receipt = authority::push(&source, &fleet.link, request).await.map_err(|refused| {
        if refused.error.class != Class::Moved {
            return Failure::from(refused);
        }
        let found = refused.error.found.map(|version| format!(" (generation {version})")).unwrap_or_default();
        Failure::refused(format!(
            "{} holds a registry already{found}; `registry import` only founds one, `registry push` replaces it",
            source.location()
        ))
    })?;
    if args.json {
        ui::line(serde_json::to_string(&receipt).map_err(|e| Failure::here(e.to_string()))?)?;
    } else {
        ui::line(receipt.text(&args.path.display().to_string()))?;
    }
    Ok(Outcome::Done)
}
