use super::elsewhere;
use crate::args::JsonArgs;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::{Value, json};
use stado_fleet::disk::Lock;
use stado_fleet::edit::{self, Claim};
use stado_fleet::placement::{Entry, Journal, explain};

/// `placement status`: what the registry claims, what this host's journal knows of it, and whether somebody is at work.
pub(crate) async fn status(args: JsonArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let words = ["status"].into_iter().chain(args.json.then_some("--json"));
    if let Some(done) = elsewhere::run(&fleet, &words.collect::<Vec<_>>()).await? {
        return Ok(done);
    }
    let document = fleet.read(false).await?.snapshot.valid.document.clone();
    let journal = Journal::below(&fleet.host.stado_home);
    let mover = Lock::holder(&journal.lock())?;
    let mut rows: Vec<Row> = Vec::new();
    for claim in edit::claims(&document) {
        let entry = journal.read(&claim.id)?;
        rows.push(Row::claimed(claim, entry, mover));
    }
    let open: Vec<String> = rows.iter().map(|row| row.claim.id.clone()).collect();
    rows.extend(journal.entries().into_iter().filter(|entry| !open.contains(&entry.claim.id)).map(Row::unclaimed));
    if args.json {
        ui::json(&json!({"transactions": rows.iter().map(Row::json).collect::<Result<Vec<_>, _>>()?}))?;
    } else if rows.is_empty() {
        ui::line("no placement transaction is active")?;
    } else {
        ui::print(&rows.iter().map(Row::text).collect::<String>())?;
    }
    Ok(Outcome::Done)
}

struct Row {
    claim: Claim,
    entry: Option<Entry>,
    active: bool,
    /// Pid of who is at work, 0 when it is not known.
    mover: Option<u32>,
    explanation: String,
}

impl Row {
    fn claimed(claim: Claim, entry: Option<Entry>, mover: Option<Option<u32>>) -> Self {
        let explanation = match mover {
            Some(Some(pid)) => format!("process {pid} is at work on it"),
            Some(None) => "another process is at work on it".to_owned(),
            None => explain(&claim.from_host, &claim.to_host, entry.as_ref()),
        };
        Self { claim, entry, active: true, mover: mover.map(Option::unwrap_or_default), explanation }
    }

    fn unclaimed(entry: Entry) -> Self {
        let explanation =
            "the registry does not name it any more; `stado placement recover` ends what is left of it".to_owned();
        Self { claim: entry.claim.clone(), entry: Some(entry), active: false, mover: None, explanation }
    }

    fn json(&self) -> Result<Value, Failure> {
        let mut row = serde_json::to_value(&self.claim).map_err(|e| Failure::here(e.to_string()))?;
        let entry = self.entry.as_ref();
        let more = json!({
            "active": self.active, "step": self.recorded().map(|e| e.step), "back": entry.map(|e| e.back),
            "error": entry.and_then(|e| e.error.clone()), "mover_pid": self.mover, "explanation": self.explanation,
        });
        if let (Some(row), Value::Object(more)) = (row.as_object_mut(), more) {
            row.extend(more);
        }
        Ok(row)
    }

    /// The entry, where the step in it is one that was begun.
    fn recorded(&self) -> Option<&Entry> {
        self.entry.as_ref().filter(|entry| !entry.unrecorded)
    }

    fn text(&self) -> String {
        let Claim { id, profile, from_host, to_host, started_at } = &self.claim;
        let step = self.recorded().map_or("-", |entry| entry.step.word());
        format!(
            "{profile}: {from_host} -> {to_host}  transaction={id} started={started_at} step={step}\n    {}\n",
            self.explanation
        )
    }
}
