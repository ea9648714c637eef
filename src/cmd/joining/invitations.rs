//! `fleet invitations`.
use crate::args::FleetInvitations;
use crate::config::{Env, HostConfig};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use serde_json::{Value, json};
use stado_fleet::join::{Fate, Record, Shelf};

/// `fleet invitations`: the list, or one taken back.
pub(crate) async fn invitations(args: FleetInvitations, env: &Env) -> Verb {
    let shelf = Shelf::new(&HostConfig::read(env, None)?.stado_home);
    let now = Timestamp::now();
    if let Some(id) = &args.withdraw {
        return withdraw(&shelf, id, now);
    }
    if args.seen {
        shelf.change(stado_fleet::join::Book::seen)?;
    }
    let book = shelf.read()?;
    if args.json {
        let rows: Vec<Value> = book.invitations.iter().map(|record| row(record, now)).collect();
        ui::json(&json!({"invitations": rows, "warnings": book.warnings()}))?;
    } else if book.invitations.is_empty() {
        ui::line("this host has made no invitation; `stado fleet invite` makes one")?;
    } else {
        book.invitations.iter().try_for_each(|record| ui::print(&lines(record, now)))?;
        book.warnings().iter().for_each(ui::note);
    }
    Ok(Outcome::Done)
}

fn withdraw(shelf: &Shelf, id: &str, now: Timestamp) -> Verb {
    match shelf.change(|book| book.withdraw(id, now))? {
        None => Err(Failure::not_found(format!("there is no invitation {id}; `stado fleet invitations` lists them"))),
        Some(Fate::Used) => Err(Failure::refused(format!(
            "invitation {id} was used already: `stado registry host remove` takes the host out that joined with it"
        ))),
        Some(_) => {
            ui::line(format_args!("withdrew invitation {id}"))?;
            Ok(Outcome::Done)
        }
    }
}

/// Without the public half of its secret, which tells nobody anything.
fn row(record: &Record, now: Timestamp) -> Value {
    json!({
        "id": record.id, "state": record.fate(now).word(), "name": record.name, "made": record.made, "expires": record.expires,
        "used": record.used.as_ref().map(|used| json!({"target": used.target, "from": used.from, "at": used.at})),
        "refused": record.refused.iter().map(|refused| json!({
            "why": refused.why, "target": refused.target, "from": refused.from, "at": refused.at,
        })).collect::<Vec<_>>(),
    })
}

fn lines(record: &Record, now: Timestamp) -> String {
    let second = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let what = match (&record.used, record.fate(now)) {
        (Some(used), _) => format!("used by {} from {} at {}", used.target, used.from, second(used.at)),
        (None, Fate::Open) => format!("open until {}", second(record.expires)),
        (None, fate) => format!("{} ({})", fate.word(), second(record.expires)),
    };
    let only = record.name.as_ref().map(|name| format!(" for {name}")).unwrap_or_default();
    let mut text = format!("{}{only}  {what}\n", record.id);
    for refused in &record.refused {
        let (why, target) = (&refused.why, &refused.target);
        text.push_str(&format!("    refused ({why}): {target} from {} at {}\n", refused.from, second(refused.at)));
    }
    text
}
