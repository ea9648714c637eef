use crate::args::ValidateArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::input;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_fleet::authority;
use stado_fleet::document::Document;
use stado_fleet::validate;

/// `registry validate`: `valid registry: <path>`, or every finding.
pub(crate) async fn validate(args: ValidateArgs, env: &Env) -> Verb {
    let (document, place) = match &args.path {
        Some(path) => {
            let bytes = input::read(path, "registry")?;
            (Document::parse(bytes).map_err(|e| Failure::config(e.to_string()))?, path.display().to_string())
        }
        None => stored(env).await?,
    };
    for key in document.unknown_keys() {
        ui::note(format_args!("{key}: a key that this build does not know; it is kept"));
    }
    match validate::validate(document) {
        Ok(_) => {
            ui::line(format_args!("valid registry: {place}"))?;
            Ok(Outcome::Done)
        }
        Err(invalid) => {
            if invalid.0.len() > 1 {
                invalid.0.iter().for_each(ui::note);
            }
            Err(Failure::config(invalid.to_string()))
        }
    }
}

async fn stored(env: &Env) -> Result<(Document, String), Failure> {
    let fleet = Fleet::open(env)?;
    let source = fleet.source();
    let read = authority::fetch_raw(&source, &fleet.link).await?;
    let absent = || Failure::not_found(format!("no registry document at {}", source.location()));
    Ok((read.ok_or_else(absent)?.0, source.location()))
}
