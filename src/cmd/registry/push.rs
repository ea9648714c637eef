use crate::args::PushArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::input;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_fleet::authority::{self, PushReceipt, PushRequest};
use stado_fleet::edit::Overrides;

/// `registry push`: replaces the stored document; on a host that is not the authority, through the authority.
pub(crate) async fn push(args: PushArgs, env: &Env) -> Verb {
    let if_generation = args.if_generation.as_deref().map(str::parse).transpose();
    let request = PushRequest {
        bytes: input::read(&args.path, "registry push")?.into(),
        if_generation: if_generation.map_err(|e| Failure::usage(format!("--if-generation: {e}")))?,
        overrides: Overrides { force: args.force, allow_empty_fleet: args.allow_empty_fleet },
    };
    let fleet = Fleet::open(env)?;
    let pushed = authority::push(&fleet.source().await?, &fleet.link, request).await;
    match &pushed {
        Ok(receipt) if args.json => print(receipt)?,
        Ok(receipt) => ui::line(receipt.text(&args.path.display().to_string()))?,
        Err(refused) => {
            if let Some(receipt) = refused.receipt.as_ref().filter(|_| args.json) {
                print(receipt)?;
            }
        }
    }
    pushed?;
    Ok(Outcome::Done)
}

/// One line: other hosts find it among what a login script may print.
fn print(receipt: &PushReceipt) -> Result<(), Failure> {
    let text = serde_json::to_string(receipt).map_err(|e| Failure::here(e.to_string()))?;
    ui::line(text)
}
