use super::authority;
use super::stores::{Report, Stores};
use crate::args::TlsTrustArgs;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use serde_json::json;

/// `tls trust`: exit 0 when every store that is here was changed, 1 when one needs a person's hands.
pub(crate) async fn trust(args: TlsTrustArgs, env: &Env) -> Verb {
    let (folder, facts) = authority(&args.place, env)?;
    let stores = Stores::new(&folder, &facts, &args.stores, env)?;
    let reports = if args.uninstall { stores.uninstall() } else { stores.install() };
    if args.json {
        let rows: Vec<_> = reports.iter().map(Report::json).collect();
        ui::json(&json!({"fingerprint": facts.fingerprint, "stores": rows}))?;
    } else {
        for report in &reports {
            ui::print(&report.text())?;
        }
    }
    Ok(if reports.iter().any(Report::needs_hands) { Outcome::No } else { Outcome::Done })
}
