//! `stado vault …`: a small vault by the interface of fleet contract §7.2.
mod grant;
mod items;
mod list;
mod serve;

pub(crate) use grant::{grant, revoke};
pub(crate) use items::{get, init, put, remove};
pub(crate) use list::list;
pub(crate) use serve::serve;

use super::Wanted;
use crate::args::{PairArgs, VaultPlace};
use crate::config::{Env, FleetFile};
use crate::exit::Failure;
use stado_fleet::vault::contents::check_name;
use stado_fleet::vault::{Event, Vault};
use stado_resolver::http::tls::PairFiles;
use std::path::{Path, PathBuf};

/// Who this account's own commands are in the audit log.
const OWNER: &str = "owner";

impl PairArgs {
    /// Both, or none: clap sees to that.
    pub(crate) fn pair(&self) -> Option<PairFiles> {
        let (cert, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        Some(PairFiles { cert, key })
    }
}

/// The directory of the vault.
fn dir(place: &VaultPlace, env: &Env) -> Result<PathBuf, Failure> {
    match (&place.vault, FleetFile::find(env)?.text("vault.path")?) {
        (Some(path), _) => Ok(path.clone()),
        (None, Some(path)) => Ok(env.expand(&path)?),
        (None, None) => Ok(env.home()?.join(".stado/vault")),
    }
}

fn open(dir: &Path, wanted: &Wanted) -> Result<Vault, Failure> {
    Ok(Vault::open_while(dir, &|| wanted.still())?)
}

/// Refuses what no name can be.
fn named(what: &str, names: &[&str]) -> Result<(), Failure> {
    for name in names {
        check_name(name).map_err(|e| Failure::usage(format!("the {what} {name:?} {e}")))?;
    }
    Ok(())
}

/// A line of the audit log about a command of this account.
fn event<'a>(action: &'a str, item: Option<&'a str>, field: Option<&'a str>) -> Event<'a> {
    let outcome = if action == "read" { "given" } else { "done" };
    Event { action, outcome, consumer: OWNER, item, field, ..Event::default() }
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
