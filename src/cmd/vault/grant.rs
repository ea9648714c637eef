//! `vault grant`, `revoke`.
use super::{OWNER, dir, event, named, now, open};
use crate::args::{VaultGrant, VaultRevoke};
use crate::cmd::{Wanted, unless_stopped};
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_fleet::vault::{Event, Secret, given};
use std::collections::BTreeSet;
use std::path::Path;

/// `vault grant`: the token goes to a file, never to the terminal.
pub(crate) async fn grant(args: VaultGrant, env: &Env) -> Verb {
    let dir = dir(&args.place, env)?;
    unless_stopped(move |wanted| grant_in(&dir, args, wanted)).await
}

fn grant_in(dir: &Path, args: VaultGrant, wanted: &Wanted) -> Verb {
    let items: Vec<&str> = args.items.iter().map(String::as_str).collect();
    named("consumer", &[&args.consumer])?;
    named("item", &items)?;
    if args.consumer == OWNER {
        return Err(Failure::usage(format!(
            "the consumer \"{OWNER}\" is this account itself, in the audit log; give the grant another name"
        )));
    }
    let vault = open(dir, wanted)?;
    let before = vault.contents()?;
    let known = before.grants.contains_key(&args.consumer);
    if !known && args.token_file.is_none() {
        return Err(Failure::usage(format!(
            "{} has no token yet: --token-file names the new file that it is written to",
            args.consumer
        )));
    }
    let token = args.token_file.as_ref().map(|_| Secret::random()).transpose().map_err(Failure::here)?;
    if let (Some(file), Some(token)) = (&args.token_file, &token) {
        given(file, token)?;
    }
    let (wanted, at): (BTreeSet<String>, _) = (args.items.iter().cloned().collect(), now());
    let told = args.items.join(" ");
    let said = Event { grantee: Some(&args.consumer), ..event("grant", Some(&told), None) };
    let may_read = vault.change(&said, |contents| {
        let grant = contents.grant(&args.consumer, wanted, token.as_ref(), &at);
        Ok(grant.map(|grant| grant.items.iter().cloned().collect::<Vec<_>>()).unwrap_or_default())
    })?;
    ui::line(format_args!("{} may read {}", args.consumer, may_read.join(", ")))?;
    if let Some(file) = &args.token_file {
        let old = if known { "; its old one holds no more" } else { "" };
        ui::line(format_args!("its token is in {}{old}", file.display()))?;
    }
    let here = |item: &&String| before.items.get(*item).is_some_and(|item| !item.deleted);
    for item in args.items.iter().filter(|item| !here(item)) {
        ui::note(format_args!("there is no item {item} yet: `stado vault put {item}`"));
    }
    Ok(Outcome::Done)
}

/// `vault revoke`.
pub(crate) async fn revoke(args: VaultRevoke, env: &Env) -> Verb {
    let dir = dir(&args.place, env)?;
    unless_stopped(move |wanted| revoke_in(&dir, args, wanted)).await
}

fn revoke_in(dir: &Path, args: VaultRevoke, wanted: &Wanted) -> Verb {
    let vault = open(dir, wanted)?;
    let (items, at): (BTreeSet<String>, _) = (args.items.iter().cloned().collect(), now());
    let contents = vault.contents()?;
    let holds = contents
        .grants
        .get(&args.consumer)
        .is_some_and(|grant| items.is_empty() || grant.items.intersection(&items).next().is_some());
    if !holds {
        let what = if items.is_empty() { "grant".to_owned() } else { format!("grant for {}", args.items.join(", ")) };
        return Err(Failure::not_found(format!("{} has no {what}; see `stado vault list`", args.consumer)));
    }
    let told = args.items.join(" ");
    let item = Some(told.as_str()).filter(|told| !told.is_empty());
    let said = Event { grantee: Some(&args.consumer), ..event("revoke", item, None) };
    vault.change(&said, |contents| Ok(contents.revoke(&args.consumer, &items, &at)))?;
    if items.is_empty() {
        ui::line(format_args!("{} may read nothing, and its token holds no more", args.consumer))?;
    } else {
        ui::line(format_args!("{} may no longer read {}", args.consumer, args.items.join(", ")))?;
    }
    Ok(Outcome::Done)
}
