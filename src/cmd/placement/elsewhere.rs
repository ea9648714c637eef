//! The same verb, run by the authority (fleet contract §6.11).
use crate::cmd::fleet::Fleet;
use crate::exit::{Failure, Outcome};
use crate::ui;
use stado_fleet::authority::Source;
use stado_fleet::fault::{Blame, Class};
use stado_fleet::link::ExecLimits;
use stado_fleet::placement::shell;
use std::time::Duration;

/// A move copies state of any size.
const DEADLINE: Duration = Duration::from_secs(24 * 3600);
const ANSWER: usize = 1 << 20;

/// Runs `placement <words>` on the authority and passes on what it says; `None` when this host is the authority.
pub(super) async fn run(fleet: &Fleet, words: &[&str]) -> Result<Option<Outcome>, Failure> {
    let Source::Remote(authority) = fleet.source().await? else { return Ok(None) };
    let words: Vec<String> = words.iter().map(|word| shell::quoted_if_needed(word)).collect();
    let command = authority.verb(&format!("placement {}", words.join(" ")));
    let limits = ExecLimits { stdout: ANSWER, deadline: DEADLINE };
    let output = fleet.link.exec(&authority.target, &authority.paths, &command, b"", limits).await.map_err(|e| {
        let sentence = format!("registry authority {}: {e}", authority.target);
        Failure { message: sentence, ..Failure::from(e) }
    })?;
    ui::print(&String::from_utf8_lossy(&output.stdout))?;
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().filter(|line| !line.trim().is_empty()).for_each(ui::note);
    let class = match output.status {
        Some(0) => return Ok(Some(Outcome::Done)),
        Some(2) => Class::Usage,
        Some(69) => Class::InfraDown,
        Some(75) => Class::Moved,
        _ => Class::Unknown,
    };
    let status = output.status.map_or("no exit status".to_owned(), |status| status.to_string());
    Err(Failure::new(class, Blame::Remote, format!("registry authority placement exited with {status}")))
}
