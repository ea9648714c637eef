use super::stores::{Report, Stores};
use super::{describe, settings};
use crate::args::TlsStatusArgs;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use serde_json::{Value, json};
use stado_resolver::http::tls::{CertStatus, Tls, authority};

/// `tls status`: exit 1 when something that is configured cannot be served.
pub(crate) async fn status(args: TlsStatusArgs, env: &Env) -> Verb {
    let settings = settings(&args.place, env)?;
    let mut reports = Vec::new();
    let mut about = Value::Null;
    if let Some(folder) = &settings.authority
        && let Some(facts) = authority::read(folder)?
    {
        about = describe(folder, &facts, None);
        reports = Stores::new(folder, &facts, &args.stores, env)?.look();
    }
    let (certificates, refused) = match Tls::load(settings) {
        Ok(tls) => (tls.map(|tls| tls.status(Timestamp::now())).unwrap_or_default(), None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let well = refused.is_none() && certificates.iter().all(|one| one.problem.is_none());
    if args.json {
        ui::json(&json!({
            "authority": about,
            "trusted_by": reports.iter().map(Report::json).collect::<Vec<_>>(),
            "certificates": certificates.iter().map(row).collect::<Vec<_>>(),
            "refused": refused,
        }))?;
    } else {
        print(&about, &reports, &certificates, refused.as_deref())?;
    }
    Ok(if well { Outcome::Done } else { Outcome::No })
}

fn row(one: &CertStatus) -> Value {
    json!({
        "source": one.source,
        "names": one.names,
        "not_after": one.not_after.map(|at| at.to_string()),
        "problem": one.problem,
        "since": one.since.map(|at| at.to_string()),
    })
}

fn print(
    about: &Value,
    reports: &[Report],
    certificates: &[CertStatus],
    refused: Option<&str>,
) -> Result<(), crate::exit::Failure> {
    match about["fingerprint"].as_str() {
        Some(print) => {
            ui::line(format_args!("authority: {} (SHA-256 {print})", about["subject"].as_str().unwrap_or("")))?
        }
        None => ui::line("authority: none; `stado tls init` makes one")?,
    }
    for report in reports {
        ui::print(&report.text())?;
    }
    for one in certificates {
        let until = one.not_after.map(|at| format!(" until {at}")).unwrap_or_default();
        ui::line(format_args!("certificate: {} for {}{until}", one.source, one.names.join(", ")))?;
        if let Some(problem) = &one.problem {
            ui::line(format_args!("  {problem}"))?;
        }
    }
    refused.map_or(Ok(()), |text| ui::line(format_args!("not served: {text}")))
}
