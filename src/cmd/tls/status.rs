use super::stores::{Report, Stores};
use super::{describe, mesh};
use crate::args::TlsStatusArgs;
use crate::client::Api;
use crate::config::{Env, MeshSettings};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use serde_json::{Value, json};
use stado_fleet::wire::CertificateList;
use stado_resolver::http::tls::{CertStatus, Tls, authority};
use std::time::Duration;

/// A daemon of this host answers at once, or does not run.
const PATIENCE: Duration = Duration::from_secs(3);

/// Who says what the certificates are.
enum Teller {
    /// The daemon that serves them.
    Daemon,
    /// Their files, as a daemon would find them now.
    Files,
}

impl Teller {
    fn word(&self) -> &'static str {
        match self {
            Self::Daemon => "daemon",
            Self::Files => "files",
        }
    }
}

/// `tls status`: exit 1 when something that is configured cannot be served.
pub(crate) async fn status(args: TlsStatusArgs, env: &Env) -> Verb {
    let settings = mesh(&args.place, env)?;
    let mut reports = Vec::new();
    let mut about = Value::Null;
    if let Some(folder) = &settings.tls.authority
        && let Some(facts) = authority::read(folder)?
    {
        about = describe(folder, &facts, None);
        reports = Stores::new(folder, &facts, &args.stores, env)?.look();
    }
    // Another state file is another daemon's.
    let served = if args.place.state.is_none() { ask(&settings).await } else { None };
    let (teller, list) = match served {
        Some(list) => (Teller::Daemon, list),
        None => (Teller::Files, read(settings)),
    };
    let well = list.refused.is_none() && list.certificates.iter().all(|one| one.problem.is_none());
    if args.json {
        ui::json(&json!({
            "authority": about,
            "trusted_by": reports.iter().map(Report::json).collect::<Vec<_>>(),
            "from": teller.word(),
            "certificates": list.certificates,
            "refused": list.refused,
        }))?;
    } else {
        print(&about, &reports, &teller, &list)?;
    }
    Ok(if well { Outcome::Done } else { Outcome::No })
}

/// What the running daemon serves, or why it does not; `None` where none runs, or it was not asked for HTTPS.
async fn ask(settings: &MeshSettings) -> Option<CertificateList> {
    let list = Api::new(&settings.socket).with_timeout(PATIENCE).certificates().await.ok()?;
    (list.served || list.refused.is_some()).then_some(list)
}

fn read(settings: MeshSettings) -> CertificateList {
    match Tls::load(settings.tls) {
        Ok(tls) => {
            let all = tls.map(|tls| tls.status(Timestamp::now())).unwrap_or_default();
            let certificates = all.into_iter().map(CertStatus::into_wire).collect();
            CertificateList { certificates, ..CertificateList::default() }
        }
        Err(error) => CertificateList { refused: Some(error.to_string()), ..CertificateList::default() },
    }
}

fn print(about: &Value, reports: &[Report], teller: &Teller, list: &CertificateList) -> Result<(), Failure> {
    match about["fingerprint"].as_str() {
        Some(print) => {
            ui::line(format_args!("authority: {} (SHA-256 {print})", about["subject"].as_str().unwrap_or("")))?
        }
        None => ui::line("authority: none; `stado tls init` makes one")?,
    }
    for report in reports {
        ui::print(&report.text())?;
    }
    match teller {
        Teller::Daemon => ui::line("served by the running daemon:")?,
        Teller::Files => ui::line("as a daemon would find them now (none serves them):")?,
    }
    for one in &list.certificates {
        let until = one.not_after.as_ref().map(|at| format!(" until {at}")).unwrap_or_default();
        ui::line(format_args!("certificate: {} for {}{until}", one.source, one.names.join(", ")))?;
        if let Some(problem) = &one.problem {
            let since = one.since.as_ref().map(|at| format!(" (since {at})")).unwrap_or_default();
            ui::line(format_args!("  {problem}{since}"))?;
        }
    }
    list.refused.as_ref().map_or(Ok(()), |text| ui::line(format_args!("not served: {text}")))
}
