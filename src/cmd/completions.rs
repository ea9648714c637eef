//! `stado completions SHELL`, and the answers to what that shell asks on Tab. Names are those of this moment: services from the
//! daemon, hosts and placed services from this host's copy of the registry. A daemon that is away costs no more than [`PATIENCE`].
use super::service::api as daemon_api;
use crate::args::{CompletionsArgs, DaemonArgs, Shell, Stado};
use crate::config::{Env, HostConfig};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui::{self, clean};
use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{EnvCompleter, Shells};
use stado_fleet::document::Registry;
use stado_fleet::last_good::LastGood;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// The variable in which the shell's function says who asks.
const ASKED: &str = "STADO_COMPLETE";
/// A person waits for Tab.
const PATIENCE: Duration = Duration::from_millis(400);

/// Prints the function that a shell calls on Tab; it asks the program that stands on the PATH.
pub(crate) async fn completions(args: CompletionsArgs) -> Verb {
    let shell = match args.shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
    };
    let mut script = Vec::new();
    let completer = completer(shell)?;
    completer.write_registration(ASKED, "stado", "stado", "stado", &mut script).map_err(cannot)?;
    ui::raw(&script)?;
    Ok(Outcome::Done)
}

/// The answer, when it is a shell's function that started this process: `stado -- <the words so far>`.
pub(crate) fn asked(env: &Env) -> Option<Verb> {
    let shell = env.raw(ASKED)?.to_string_lossy().into_owned();
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    Some(answer(&shell, words.collect(), env))
}

fn answer(shell: &str, words: Vec<OsString>, env: &Env) -> Verb {
    let mut command = with_names(Stado::command(), "", env);
    command.build();
    let mut text = Vec::new();
    let here = std::env::current_dir().ok();
    completer(shell)?.write_complete(&mut command, words, here.as_deref(), &mut text).map_err(cannot)?;
    ui::raw(&text)?;
    Ok(Outcome::Done)
}

fn completer(shell: &str) -> Result<&'static dyn EnvCompleter, Failure> {
    const KNOWN: Shells<'static> = Shells::builtins();
    KNOWN
        .0
        .iter()
        .copied()
        .find(|known| known.is(shell))
        .ok_or_else(|| Failure::usage(format!("{ASKED} is {shell:?}; known are bash, zsh and fish")))
}

fn cannot(error: std::io::Error) -> Failure {
    Failure::here(format!("cannot complete: {error}"))
}

/// What an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// A service of this host's mesh.
    Mesh,
    /// A service that the registry places.
    Placed,
    /// A host of the registry.
    Hosts,
}

/// Every argument that names something, from here down, knows what there is to name.
fn with_names(command: Command, path: &str, env: &Env) -> Command {
    let with = |arg: Arg| match names(path, arg.get_id().as_str()) {
        Some(what) => {
            let env = env.clone();
            arg.add(ArgValueCandidates::new(move || candidates(what, &env)))
        }
        None => arg,
    };
    command.mut_args(with).mut_subcommands(|verb| {
        let path = format!("{path}/{}", verb.get_name());
        with_names(verb, &path, env)
    })
}

fn names(path: &str, arg: &str) -> Option<Names> {
    match (path, arg) {
        (_, "target") => Some(Names::Hosts),
        (path, "name" | "service") if path.starts_with("/service/directory") => Some(Names::Placed),
        ("/resolver/resolve", "service") => Some(Names::Placed),
        (path, "name" | "names" | "with") if path.starts_with("/service/") => Some(Names::Mesh),
        _ => None,
    }
}

fn candidates(what: Names, env: &Env) -> Vec<CompletionCandidate> {
    let all = match what {
        Names::Mesh => mesh(env),
        Names::Placed => copy(env).map(|registry| placed(&registry)).unwrap_or_default(),
        Names::Hosts => copy(env).map(|registry| hosts(&registry)).unwrap_or_default(),
    };
    let all = all.into_iter().filter(|(name, _)| clean::line(name) == *name && !name.contains(char::is_whitespace));
    all.map(|(name, help)| CompletionCandidate::new(name).help(Some(clean::line(&help).into()))).collect()
}

fn mesh(env: &Env) -> Vec<(String, String)> {
    let Ok(api) = daemon_api(&DaemonArgs::default(), env) else { return Vec::new() };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    let all = runtime.block_on(api.with_timeout(PATIENCE).list()).unwrap_or_default();
    all.into_iter()
        .map(|service| (service.name, format!("{} {}", service.status, service.frontend.endpoint())))
        .collect()
}

fn copy(env: &Env) -> Option<Arc<Registry>> {
    let home = HostConfig::read(env, None).ok()?.stado_home;
    Some(LastGood::new(home.join("cache")).read().ok()??.snapshot.valid.registry.clone())
}

fn placed(registry: &Registry) -> Vec<(String, String)> {
    let services = registry.directory.iter().flat_map(|directory| &directory.services);
    services.map(|(name, service)| (name.to_string(), format!("on {}", service.active_host))).collect()
}

fn hosts(registry: &Registry) -> Vec<(String, String)> {
    registry.targets.values().map(|target| (target.name.to_string(), target.kind.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_name_something_know_what() {
        assert_eq!(names("/service/resolve", "name"), Some(Names::Mesh));
        assert_eq!(names("/service/run", "with"), Some(Names::Mesh));
        assert_eq!(names("/service/directory/connect", "name"), Some(Names::Placed));
        assert_eq!(names("/host/ping", "target"), Some(Names::Hosts));
        assert_eq!(names("/registry/push", "file"), None);
    }

    #[test]
    fn every_argument_that_is_meant_is_there() {
        let mut found = Vec::new();
        fn walk(command: &Command, path: &str, found: &mut Vec<(String, Names)>) {
            let named = command.get_arguments().filter_map(|arg| names(path, arg.get_id().as_str()));
            found.extend(named.map(|what| (path.to_owned(), what)));
            command.get_subcommands().for_each(|verb| walk(verb, &format!("{path}/{}", verb.get_name()), found));
        }
        walk(&Stado::command(), "", &mut found);
        for (path, what) in [
            ("/service/inspect", Names::Mesh),
            ("/service/wait", Names::Mesh),
            ("/service/directory/endpoint", Names::Placed),
            ("/resolver/resolve", Names::Placed),
            ("/host/inventory", Names::Hosts),
        ] {
            assert!(found.contains(&(path.to_owned(), what)), "{path} {what:?}: {found:?}");
        }
    }
}
