use crate::args::ValidateArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::input;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
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
    let unknown = document.unknown_keys();
    let findings = validate::validate(document).err().map(|invalid| invalid.0).unwrap_or_default();
    if args.json {
        let findings: Vec<_> =
            findings.iter().map(|f| json!({"location": f.location, "finding": f.to_string()})).collect();
        ui::json(&json!({
            "path": place, "valid": findings.is_empty(), "findings": findings, "unknown_keys": unknown,
        }))?;
        return Ok(if findings.is_empty() { Outcome::Done } else { Outcome::No });
    }
    for key in unknown {
        ui::note(format_args!("{key}: a key that this build does not know; it is kept"));
    }
    if findings.is_empty() {
        ui::line(format_args!("valid registry: {place}"))?;
        return Ok(Outcome::Done);
    }
    if findings.len() > 1 {
        findings.iter().for_each(ui::note);
    }
    Err(Failure::config(validate::Invalid(findings).to_string()))
}

async fn stored(env: &Env) -> Result<(Document, String), Failure> {
    let fleet = Fleet::open(env)?;
    let source = fleet.source().await?;
    let read = authority::fetch_raw(&source, &fleet.link).await?;
    let absent = || Failure::not_found(format!("no registry document at {}", source.location()));
    Ok((read.ok_or_else(absent)?.0, source.location()))
}
