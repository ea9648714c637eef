use super::{describe, folder};
use crate::args::TlsInitArgs;
use crate::config::{Env, HostConfig};
use crate::exit::{Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use stado_resolver::http::tls::authority;

/// `tls init`: makes the authority unless there is one.
pub(crate) async fn init(args: TlsInitArgs, env: &Env) -> Verb {
    let folder = folder(&args.place, env)?;
    let now = Timestamp::now();
    let old = authority::read(&folder)?;
    let kept = old.as_ref().filter(|old| !args.renew && now < old.not_after).cloned();
    let made = kept.is_none();
    let facts = match kept {
        Some(facts) => facts,
        None => authority::create(&folder, &HostConfig::whoami(env)?, now)?,
    };
    if args.json {
        ui::json(&describe(&folder, &facts, Some(if made { "made" } else { "kept" })))?;
        return Ok(Outcome::Done);
    }
    let done = if made { "made" } else { "there is already" };
    ui::line(format_args!("{done} an authority in {}, until {}", folder.display(), facts.not_after))?;
    ui::line(format_args!("  {} (SHA-256 {})", facts.subject, facts.fingerprint))?;
    if let Some(old) = old.filter(|_| made) {
        ui::note(format_args!(
            "the one before (SHA-256 {}) is trusted where it was until its trust is taken away",
            old.fingerprint
        ));
    }
    ui::note("next: `stado tls trust`; a daemon that serves HTTP (http.enabled) opens HTTPS at its next start");
    Ok(Outcome::Done)
}
