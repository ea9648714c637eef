//! `object-auth`: the object API's tokens, of a host that serves one and of a host that uses one.
use super::report::Check;
use crate::cmd::fleet::Fleet;
use crate::config::{Backend, Env, FleetFile};
use serde_json::Value;
use stado_fleet::fault::Class;
use stado_fleet::store::object::read_token;
use std::time::Duration;

pub(super) const ABOUT: (&str, &str) = ("object-auth", "Object API authorization");
const MODE: &str = "Make it a regular file of this account alone with the token in one line (chmod 600).";
/// An object API that takes longer than that is told as one that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn checks(fleet: &Fleet, env: &Env) -> Vec<Check> {
    let file = match FleetFile::find(env) {
        Ok(file) => file,
        Err(error) => return vec![Check::fail(ABOUT, error.to_string(), "Correct the configuration file.")],
    };
    let mut checks = served(&file, env);
    checks.extend(used(fleet).await);
    if checks.is_empty() {
        checks.push(Check::skip(ABOUT, "this host neither serves an object API nor reads through one"));
    }
    checks
}

/// What this host's own object API compares with.
fn served(file: &FleetFile, env: &Env) -> Vec<Check> {
    let Some(namespaces) = file.value("object_api.namespaces").and_then(Value::as_object) else { return Vec::new() };
    let mut files: Vec<(String, &str)> = Vec::new();
    for (name, entry) in namespaces {
        let own = entry.get("token_file").and_then(Value::as_str).filter(|file| !file.is_empty());
        files.extend(own.map(|file| (format!("namespace {name}"), file)));
    }
    let verifier = file.value("object_api.skarbiec.token_file").and_then(Value::as_str);
    files.extend(verifier.map(|file| ("the vault's verifier".to_owned(), file)));
    let mut tokens = Vec::new();
    let mut wrong = Vec::new();
    for (whose, file) in &files {
        match env.expand(file).map_err(|e| e.to_string()).and_then(|path| read_token(&path)) {
            Ok(token) if tokens.contains(&token) => wrong.push(Check::fail(
                ABOUT,
                format!("the token of {whose} is that of another one, so that either opens both"),
                format!("Write another token into {file}, and give it to whoever uses it."),
            )),
            Ok(token) => tokens.push(token),
            Err(why) => wrong.push(Check::fail(ABOUT, format!("{whose}: {why}"), MODE)),
        }
    }
    if wrong.is_empty() {
        let (spaces, files) = (namespaces.len(), files.len());
        wrong.push(Check::ok(ABOUT, format!("serves {spaces} namespace(s); {files} token file(s) can be used")));
    }
    wrong
}

/// Whether the object API that keeps this host's registry takes its token.
async fn used(fleet: &Fleet) -> Option<Check> {
    let storage = &fleet.host.storage;
    if storage.backend != Backend::Stado {
        return None;
    }
    if let Some(Err(why)) = storage.stado_token_file.as_deref().map(read_token) {
        return Some(Check::fail(ABOUT, why, MODE));
    }
    let location = fleet.store.location();
    let read = tokio::time::timeout(PATIENCE, fleet.store.read()).await;
    Some(match read {
        Ok(Ok(found)) => {
            let what = if found.is_some() { "the registry is read" } else { "there is no registry yet" };
            Check::ok(ABOUT, format!("this host's token is taken for {location}: {what}"))
        }
        Ok(Err(error)) if error.class == Class::Auth => Check::fail(
            ABOUT,
            error.sentence,
            "Put the token that the object API's host has into storage.stado.token_file.",
        ),
        Ok(Err(error)) => Check::fail(
            ABOUT,
            error.sentence,
            "Bring the object API back, or correct storage.stado in the configuration.",
        ),
        Err(_) => Check::fail(
            ABOUT,
            format!("{location} gave no answer within {}s", PATIENCE.as_secs()),
            "See on the object API's host what it waits for; its answer 503 names the cause.",
        ),
    })
}
