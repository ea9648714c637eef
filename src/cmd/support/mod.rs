//! `stado support bundle`: what somebody needs who is to help, in one file, without secrets. [`collect`] gathers, [`redact`]
//! (pure) takes secrets out and says where, [`pack`] writes.
mod collect;
mod pack;
mod redact;
mod secret;

use crate::args::BundleArgs;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use std::path::PathBuf;

/// Collects, packs, and says what is in it and what is not.
pub(crate) async fn bundle(args: BundleArgs, env: &Env) -> Verb {
    let now = Timestamp::now();
    let collected = collect::collect(&args, env, now).await;
    let all = redact::all(collected, env.home().ok().as_deref());
    ui::print(&all.told())?;
    if args.dry_run {
        return Ok(Outcome::Done);
    }
    let name = format!("stado-support-{}.tar", now.strftime("%Y%m%dT%H%M%SZ"));
    let path = args.output.unwrap_or_else(|| PathBuf::from(name));
    pack::write(&path, &all, now).map_err(|e| Failure::here(format!("cannot write {}: {e}", path.display())))?;
    ui::line(format_args!("wrote {}; look at it before you give it away", path.display()))?;
    Ok(Outcome::Done)
}
