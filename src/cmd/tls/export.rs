use super::{authority, folder};
use crate::args::TlsExportArgs;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::{SignedDuration, Timestamp};
use stado_fleet::disk;
use stado_resolver::http::tls::authority::issue;
use std::path::{Path, PathBuf};

/// A certificate that was handed out is not renewed by anyone; this is what browsers accept at most.
const LIFE: SignedDuration = SignedDuration::from_hours(24 * 397);

/// `tls export`: the authority's certificate, or a pair for one local name.
pub(crate) async fn export(args: TlsExportArgs, env: &Env) -> Verb {
    if let Some(host) = &args.host {
        return pair(&args, host, env);
    }
    let (_, facts) = authority(&args.place, env)?;
    match &args.output {
        None => ui::print(&facts.pem)?,
        Some(path) => disk::replace(path, if args.der { &facts.der } else { facts.pem.as_bytes() })?,
    }
    Ok(Outcome::Done)
}

fn pair(args: &TlsExportArgs, host: &str, env: &Env) -> Verb {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let issued = issue(&folder(&args.place, env)?, &host, Timestamp::now(), LIFE)?;
    let dir = args.output.clone().unwrap_or_else(|| PathBuf::from("."));
    if !dir.is_dir() {
        return Err(Failure::not_found(format!(
            "{} is no folder: --output names the one to write into",
            dir.display()
        )));
    }
    let (cert, key) = (dir.join(format!("{host}.pem")), dir.join(format!("{host}-key.pem")));
    write(&key, &issued.key)?;
    write(&cert, &issued.chain)?;
    ui::line(format_args!("{} and {}, until {}", cert.display(), key.display(), issued.not_after))?;
    Ok(Outcome::Done)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    Ok(disk::replace(path, text.as_bytes())?)
}
