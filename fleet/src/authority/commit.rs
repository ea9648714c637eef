//! Compare-and-swap through a source, confirmed by reading back (fleet contract §3.5).
use super::confirm::{ReadBack, confirm, read_back};
use super::envelope;
use super::error::Found;
use super::exec::{Exec, quoted, quoted_if_needed};
use super::receipt::PushReceipt;
use super::{RegistryError, RemoteAuthority, Source};
use crate::document::Document;
use crate::fault::Class;
use crate::link::{ExecLimits, ExecOutput, LinkError, Stage};
use crate::name::StoreVersion;
use crate::store::{Expected, RegistryStore, Swap};
use std::time::Duration;

/// Answers are receipts; a login script may chatter before them.
const ANSWER: usize = 1 << 20;
/// A large document over a slow line.
const DEADLINE: Duration = Duration::from_secs(300);
/// A write that takes longer is announced.
const BLINK: Duration = Duration::from_secs(2);
/// Older readers refuse more.
const OLD_READERS: usize = 1 << 20;
/// Exit code of a moved generation, and nothing else.
const MOVED: u32 = 75;

/// What a committed write returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// New version.
    pub version: StoreVersion,
    /// The one it replaced; `None` when the registry was created.
    pub replaced: Option<StoreVersion>,
    /// Display location.
    pub location: String,
}

/// How the swap itself ended.
enum Outcome {
    Applied(StoreVersion),
    /// It cannot be told; the cause.
    Unknown(String),
}

/// Compare-and-swap through the source (over SSH: `registry push - --if-generation G --force --allow-empty-fleet
/// --json`), then read back and confirm as a document (§3.5). `expected` is `None` for a registry that must not exist.
///
/// A write that was sent is never sent again: when its end is unknown, reading back settles it.
pub async fn commit(
    source: &Source,
    exec: &dyn Exec,
    expected: Option<&StoreVersion>,
    document: &Document,
) -> Result<Committed, RegistryError> {
    let size = document.bytes().len();
    if size > OLD_READERS {
        tracing::warn!(target: "stado::fleet", "this registry is {size} bytes; readers before this one refuse more than {OLD_READERS}");
    }
    let outcome = match source {
        Source::Store(store) => swap(store.as_ref(), expected, document).await?,
        Source::Remote(authority) => remote_swap(authority, &source.location(), exec, expected, document).await?,
    };
    match outcome {
        Outcome::Applied(version) => {
            let committed = Committed { version, replaced: expected.cloned(), location: source.location() };
            confirm(source, exec, committed, document).await
        }
        Outcome::Unknown(cause) => settle(source, exec, expected, document, &cause).await,
    }
}

async fn swap(
    store: &dyn RegistryStore,
    expected: Option<&StoreVersion>,
    document: &Document,
) -> Result<Outcome, RegistryError> {
    let condition = expected.map_or(Expected::Absent, |version| Expected::Version(version.clone()));
    let moved = |found| RegistryError::moved(&store.location(), expected, found);
    match store.swap(condition, document.bytes().to_vec()).await? {
        Swap::Applied(version) => Ok(Outcome::Applied(version)),
        Swap::Conflict { found } => Err(moved(found.into())),
        Swap::Absent => Err(moved(Found::Nothing)),
        Swap::Unknown(e) => Ok(Outcome::Unknown(e.sentence)),
    }
}

async fn remote_swap(
    authority: &RemoteAuthority,
    location: &str,
    exec: &dyn Exec,
    expected: Option<&StoreVersion>,
    document: &Document,
) -> Result<Outcome, RegistryError> {
    // The generation of an absent registry is the text "0" (§2.3).
    let generation = expected.map_or("0".to_owned(), |version| quoted_if_needed(version.as_str()));
    let command = format!(
        "{} registry push - --if-generation {generation} --force --allow-empty-fleet --json",
        quoted(&authority.command)
    );
    let limits = ExecLimits { stdout: ANSWER, deadline: DEADLINE };
    let run = exec.exec(&authority.target, &authority.paths, &command, document.bytes(), limits);
    let place = format!("registry authority {}", authority.target);
    match crate::czekam::when_long(BLINK, "registry write", &place, "ssh", run).await {
        Ok(output) => answered(authority, location, expected, &output),
        Err(e) => unanswered(authority, &e),
    }
}

/// Before the command was sent nothing was written; after that it cannot be told.
fn unanswered(authority: &RemoteAuthority, e: &LinkError) -> Result<Outcome, RegistryError> {
    if matches!(e.stage, Stage::Exec | Stage::Limit) {
        return Ok(Outcome::Unknown(format!("registry write through authority {}: {e}", authority.target)));
    }
    Err(RegistryError::write_unreached(e.class, &authority.target, e.causes()))
}

fn answered(
    authority: &RemoteAuthority,
    location: &str,
    expected: Option<&StoreVersion>,
    output: &ExecOutput,
) -> Result<Outcome, RegistryError> {
    let heard = envelope::find::<PushReceipt>(&output.stdout);
    if let Some(warning) =
        heard.as_ref().ok().and_then(|h| h.warning(&format!("registry authority {}", authority.target)))
    {
        tracing::warn!(target: "stado::fleet", "{warning}");
    }
    let receipt = heard.map(|h| h.answer);
    match (output.status, receipt) {
        (Some(0), Ok(PushReceipt { generation: Some(version), .. })) => Ok(Outcome::Applied(version)),
        (Some(0), receipt) => {
            let why = receipt.map_or_else(|e| e, |_| "its receipt names no generation".into());
            Ok(Outcome::Unknown(format!("invalid registry authority response: {why}")))
        }
        (Some(MOVED), receipt) => {
            Err(RegistryError::moved(location, expected, receipt.ok().and_then(|r| r.actual_generation).into()))
        }
        (Some(code), _) => {
            let error = refused(authority, code, &output.stderr);
            // The authority swapped and could not confirm it: not a refusal.
            if error.sentence.contains("is unconfirmed: ") { Ok(Outcome::Unknown(error.sentence)) } else { Err(error) }
        }
        // Killed on the way: by then it may have swapped.
        (None, _) => Ok(Outcome::Unknown(format!(
            "registry authority {} ended the write without an exit status: {}",
            authority.target,
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

fn refused(authority: &RemoteAuthority, code: u32, stderr: &[u8]) -> RegistryError {
    let class = if code == 69 { Class::InfraDown } else { Class::Refused };
    let sentence = format!(
        "registry authority {} refused the write with exit {code}: {}",
        authority.target,
        String::from_utf8_lossy(stderr).trim()
    );
    RegistryError::new(class, sentence)
}

/// An unknown end is settled by what is there now.
async fn settle(
    source: &Source,
    exec: &dyn Exec,
    expected: Option<&StoreVersion>,
    sent: &Document,
    cause: &str,
) -> Result<Committed, RegistryError> {
    let location = source.location();
    let back = read_back(source, exec).await.map_err(|e| {
        let sentence = format!(
            "registry write at {location} is unconfirmed: {cause}; it could not be read back: {e}. It may have been \
             written: read the registry before writing again"
        );
        RegistryError::new(Class::Unknown, sentence)
    })?;
    let found = match back {
        ReadBack::Document(version, document) if document.same_as(sent) && Some(&version) != expected => {
            return Ok(Committed { version, replaced: expected.cloned(), location });
        }
        ReadBack::Document(version, _) | ReadBack::NotJson(version, _) => Some(version),
        ReadBack::Nothing => None,
    };
    let at = found.as_ref().map_or("absent".to_owned(), |version| format!("at generation {version}"));
    Err(if found.as_ref() == expected {
        let sentence = format!("{cause}; nothing was written, the registry at {location} still is {at}");
        RegistryError::new(Class::InfraDown, sentence)
    } else {
        let sentence = format!(
            "registry write at {location} is unconfirmed: {cause}, and the registry read back is {at}, which is not what was \
             sent: another write landed, before or after this one"
        );
        RegistryError::new(Class::Unknown, sentence)
    })
}
