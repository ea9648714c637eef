use crate::args::{ConsumerAddArgs, ConsumerRemoveArgs};
use crate::cmd::fleet::Fleet;
use crate::cmd::write;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::edit::{self, Binding, NewConsumer};
use stado_fleet::name::Generation;

/// `service directory consumer add`.
pub(crate) async fn add(args: ConsumerAddArgs, env: &Env) -> Verb {
    let binding = args.target.clone().map(|target| Binding { target, bind: None, reassign: args.reassign });
    let new = NewConsumer {
        consumer: args.consumer.clone(),
        capabilities: Some(args.capabilities.clone()).filter(|all| !all.is_empty()),
        binding,
    };
    let fleet = Fleet::open(env)?;
    let written =
        write::retried(&fleet, |held, _| edit::add_consumer(held, &args.name, &new), |added| &added.edited).await?;
    let added = written.done;
    let generation = number(added.edited.generation);
    if args.json {
        let binding = added.binding.map(|bound| json!({"target": bound.target, "bind": bound.bind}));
        ui::json(&json!({
            "service": args.name, "consumer": args.consumer, "capabilities": added.capabilities,
            "generation": generation, "binding": binding,
        }))?;
    } else {
        let generation = generation.map_or("-".to_owned(), |g| g.to_string());
        ui::line(format_args!("declared {} on {} generation={generation}", args.consumer, args.name))?;
    }
    Ok(Outcome::Done)
}

/// `service directory consumer remove`.
pub(crate) async fn remove(args: ConsumerRemoveArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let written = write::retried(
        &fleet,
        |held, _| edit::remove_consumer(held, &args.name, &args.consumer),
        |removed| &removed.edited,
    )
    .await?;
    let removed = written.done;
    let generation = number(removed.edited.generation);
    if args.json {
        let bindings: Vec<_> = removed.bindings.iter().map(|b| json!({"target": b.target, "bind": b.bind})).collect();
        ui::json(&json!({
            "service": args.name, "removed": args.consumer, "generation": generation, "bindings_removed": bindings,
        }))?;
    } else {
        let generation = generation.map_or("-".to_owned(), |g| g.to_string());
        ui::line(format_args!("removed {} from {} generation={generation}", args.consumer, args.name))?;
    }
    Ok(Outcome::Done)
}

fn number(generation: Option<Generation>) -> Option<u64> {
    generation.map(|g| g.0)
}
