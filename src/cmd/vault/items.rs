//! `vault init`, `put`, `get`, `remove`.
use super::{dir, event, named, now, open};
use crate::args::{KeyChoice, VaultGet, VaultInit, VaultPut, VaultRemove};
use crate::cmd::{Wanted, unless_stopped};
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_fleet::vault::{KeyPlace, Secret, Vault, given};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Read};
use std::path::Path;

/// Largest value.
const LARGEST: u64 = 64 << 10;

/// `vault init`.
pub(crate) async fn init(args: VaultInit, env: &Env) -> Verb {
    let place = args.key.map(|choice| match choice {
        KeyChoice::File => KeyPlace::File,
        KeyChoice::Keyring => KeyPlace::Keyring,
    });
    let dir = dir(&args.place, env)?;
    let vault = unless_stopped(move |wanted| Ok(Vault::create_while(&dir, place, &|| wanted.still())?)).await?;
    let key = vault.key_place().shown(vault.path());
    ui::line(format_args!("made the vault {}; its key is in {key}", vault.path().display()))?;
    ui::note("whoever loses the key loses what is in the vault: keep a copy of both, apart from each other");
    Ok(Outcome::Done)
}

/// `vault put`: the value is never an argument.
pub(crate) async fn put(args: VaultPut, env: &Env) -> Verb {
    let dir = dir(&args.place, env)?;
    unless_stopped(move |wanted| put_in(&dir, args, wanted)).await
}

fn put_in(dir: &Path, args: VaultPut, wanted: &Wanted) -> Verb {
    let tags: Vec<&str> = args.tags.iter().map(String::as_str).collect();
    named("item", &[&args.item])?;
    named("field", &[&args.field])?;
    named("tag", &tags)?;
    let vault = open(dir, wanted)?;
    let value = if args.generate { Secret::random().map_err(Failure::here)? } else { from_input()? };
    if let Some(file) = &args.to {
        given(file, &value)?;
    }
    let fields = BTreeMap::from([(args.field.clone(), value)]);
    let tags = (!args.tags.is_empty()).then(|| args.tags.iter().cloned().collect());
    let at = now();
    let versions = vault.change(&event("put", Some(&args.item), Some(&args.field)), |contents| {
        Ok(contents.put(&args.item, fields, args.kind, tags, &at).versions)
    })?;
    ui::line(format_args!("kept {} of {} (version {versions})", args.field, args.item))?;
    Ok(Outcome::Done)
}

/// One line end at the end is the pipe's, not the value's.
fn from_input() -> Result<Secret, Failure> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::usage(
            "the value comes from standard input, which is this terminal and would show it: `stado vault put ITEM < FILE`, or \
             --generate",
        ));
    }
    let mut bytes = Vec::new();
    let read = stdin.lock().take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|e| Failure::here(format!("cannot read the value from standard input: {e}")))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Failure::refused(format!("a value has at most {LARGEST} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::refused("a value must be text (UTF-8)"))?;
    let text = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    if text.is_empty() { Err(Failure::refused("the value is empty")) } else { Ok(Secret::new(text)) }
}

/// `vault get`.
pub(crate) async fn get(args: VaultGet, env: &Env) -> Verb {
    let dir = dir(&args.place, env)?;
    unless_stopped(move |wanted| get_in(&dir, args, wanted)).await
}

fn get_in(dir: &Path, args: VaultGet, wanted: &Wanted) -> Verb {
    let vault = open(dir, wanted)?;
    let contents = vault.contents()?;
    let value = contents.items.get(&args.item).and_then(|item| item.fields.get(&args.field)).ok_or_else(|| {
        Failure::not_found(format!("the vault has no {} of {}; see `stado vault list`", args.field, args.item))
    })?;
    vault.record(&event("read", Some(&args.item), Some(&args.field)))?;
    ui::line(value.reveal())?;
    Ok(Outcome::Done)
}

/// `vault remove`.
pub(crate) async fn remove(args: VaultRemove, env: &Env) -> Verb {
    let dir = dir(&args.place, env)?;
    unless_stopped(move |wanted| remove_in(&dir, args, wanted)).await
}

fn remove_in(dir: &Path, args: VaultRemove, wanted: &Wanted) -> Verb {
    let vault = open(dir, wanted)?;
    let at = now();
    let known = vault.contents()?.items.get(&args.item).is_some_and(|item| !item.deleted);
    if !known {
        return Err(Failure::not_found(format!("the vault has no item {}; see `stado vault list`", args.item)));
    }
    let removed =
        vault.change(&event("remove", Some(&args.item), None), |contents| Ok(contents.remove(&args.item, &at)))?;
    let done = if removed { "removed" } else { "was removed already:" };
    ui::line(format_args!("{done} {}", args.item))?;
    Ok(Outcome::Done)
}
