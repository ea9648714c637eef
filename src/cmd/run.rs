//! Parse, start the log, run the verb on a runtime, turn its end into an exit code.
use super::{
    bridge, completions, database, directory, doctor, host, joining, man, placement, registry, resolver, route, serve,
    service, status, storage, support, tls, top, vault,
};
use crate::args::{
    self, ConsumerCommand, DatabaseCommand, DevmeshCommand, DevmeshdCommand, DirectoryCommand, FleetCommand,
    HostCommand, HostVerb, LogArgs, LogLevel, PathCommand, PlacementCommand, RegistryCommand, ResolverCommand,
    RouteCommand, ServiceCommand, ServicesCommand, StadoCommand, StorageCommand, SupportCommand, TlsCommand,
    VaultCommand,
};
use crate::config::Env;
use crate::exit::{self, Failure, Outcome, Verb, Voice};
use crate::ui;
use clap::Parser;
use std::process::ExitCode;

/// The binary `stado`.
pub fn stado() -> ExitCode {
    let env = Env::process();
    if let Some(answered) = completions::asked(&env) {
        return finish(Voice::Stado, &answered);
    }
    let parsed = match args::Stado::try_parse() {
        Ok(parsed) => parsed,
        Err(error) => return refused(Voice::Stado, &error),
    };
    finish(Voice::Stado, &run_stado(parsed, &env))
}

/// Runs a command of `stado` in this process, as if it had been typed.
pub(super) fn again(words: &[String], env: &Env) -> Verb {
    let words = ["stado"].into_iter().chain(words.iter().map(String::as_str));
    let parsed = args::Stado::try_parse_from(words).map_err(|error| Failure::usage(error.to_string()))?;
    run_stado(parsed, env)
}

fn run_stado(parsed: args::Stado, env: &Env) -> Verb {
    match parsed.command {
        StadoCommand::Service(command) => verb(&parsed.log, service_verb(command, env)),
        StadoCommand::Host(command) => verb(&parsed.log, fleet_host_verb(command, env)),
        StadoCommand::Database(command) => verb(&parsed.log, database_verb(command, env)),
        StadoCommand::Doctor(args) => verb(&parsed.log, doctor::doctor(*args, env)),
        StadoCommand::Support(SupportCommand::Bundle(args)) => verb(&parsed.log, support::bundle(args, env)),
        StadoCommand::Completions(args) => verb(&parsed.log, completions::completions(args)),
        StadoCommand::Man(args) => verb(&parsed.log, man::man(args)),
        StadoCommand::Status(args) => verb(&parsed.log, status::status(args, env)),
        // Without a log on standard error: it would be written over the view.
        StadoCommand::Top(args) => quiet_verb(&parsed.log, top::top(args, env)),
        StadoCommand::Storage(StorageCommand::Serve(args)) => verb(&parsed.log, storage::serve(args, env)),
        StadoCommand::Vault(command) => verb(&parsed.log, vault_verb(command, env)),
        StadoCommand::Route(command) => verb(&parsed.log, route_verb(command, env)),
        StadoCommand::Placement(command) => verb(&parsed.log, placement_verb(command, env)),
        StadoCommand::Tls(command) => verb(&parsed.log, tls_verb(command, env)),
        StadoCommand::Fleet(FleetCommand::Door(args)) => {
            // Without a log of its own: the verb that it leads to starts one.
            joining::run_verb(on_one_thread(joining::door(&args, env)), env)
        }
        StadoCommand::Fleet(command) => verb(&parsed.log, fleet_verb(command, env)),
        StadoCommand::Registry(command) => verb(&parsed.log, registry_verb(command, env)),
        StadoCommand::Resolver(ResolverCommand::Serve(args)) => serve::resolver(&args, &parsed.log, env),
        StadoCommand::Serve(args) => serve::resolver(&args.serve, &parsed.log, env),
        StadoCommand::Resolver(command) => verb(&parsed.log, resolver_verb(command, env)),
    }
}

/// The binary `devmesh`.
pub fn devmesh() -> ExitCode {
    let parsed = match args::Devmesh::try_parse() {
        Ok(parsed) => parsed,
        Err(error) => return refused(Voice::Devmesh, &error),
    };
    let env = Env::process();
    let command = match parsed.command {
        DevmeshCommand::Services(ServicesCommand::List(args)) => ServiceCommand::List(args),
        DevmeshCommand::Services(ServicesCommand::Resolve(args)) => ServiceCommand::Resolve(args),
        DevmeshCommand::Services(ServicesCommand::Inspect(args)) => ServiceCommand::Inspect(args),
        DevmeshCommand::Register(args) => ServiceCommand::Register(args),
        DevmeshCommand::Health(args) => ServiceCommand::Health(args),
        DevmeshCommand::Doctor(args) => {
            return finish(Voice::Devmesh, &verb(&parsed.log, service::doctor(args, &env)));
        }
    };
    finish(Voice::Devmesh, &verb(&parsed.log, service_verb(command, &env)))
}

/// The binary `devmeshd`.
pub fn devmeshd() -> ExitCode {
    match args::Devmeshd::try_parse() {
        Ok(args::Devmeshd { log, command: DevmeshdCommand::Serve(flags) }) => {
            finish(Voice::Devmesh, &serve::mesh(&flags, &log, &Env::process()))
        }
        Err(error) => refused(Voice::Devmesh, &error),
    }
}

async fn service_verb(command: ServiceCommand, env: &Env) -> Verb {
    match command {
        ServiceCommand::Register(args) => service::register(args, env).await,
        ServiceCommand::List(args) => service::list(args, env).await,
        ServiceCommand::Resolve(args) => service::resolve(args, env).await,
        ServiceCommand::Inspect(args) => service::inspect(args, env).await,
        ServiceCommand::Connections(args) => service::connections(args, env).await,
        ServiceCommand::Wait(args) => service::wait(args, env).await,
        ServiceCommand::Health(args) => service::health(args, env).await,
        ServiceCommand::Run(args) => service::run(args, env).await,
        ServiceCommand::Env(args) => service::env(args, env).await,
        ServiceCommand::Forget(args) => service::forget(args, env).await,
        ServiceCommand::Pin(args) => service::pin(args, env).await,
        ServiceCommand::Rename(args) => service::rename(args, env).await,
        ServiceCommand::Publish(args) => bridge::publish(args, env).await,
        ServiceCommand::Unpublish(args) => bridge::unpublish(args, env).await,
        ServiceCommand::Use(args) => bridge::use_service(args, env).await,
        ServiceCommand::Unuse(args) => bridge::unuse(args, env).await,
        ServiceCommand::Move(args) => bridge::movement(args, env).await,
        ServiceCommand::Directory(command) => directory_verb(command, env).await,
    }
}

async fn directory_verb(command: DirectoryCommand, env: &Env) -> Verb {
    match command {
        DirectoryCommand::Show(args) => directory::show(args, env).await,
        DirectoryCommand::Profiles(args) => directory::profiles(args, env).await,
        DirectoryCommand::Endpoint(args) => directory::endpoint(args, env).await,
        DirectoryCommand::Connect(args) => directory::connect(args, env).await,
        DirectoryCommand::Bind(args) => directory::bind(args, env).await,
        DirectoryCommand::Publish(args) => directory::publish(args, env).await,
        DirectoryCommand::Consumer(ConsumerCommand::Add(args)) => directory::consumer_add(args, env).await,
        DirectoryCommand::Consumer(ConsumerCommand::Remove(args)) => directory::consumer_remove(args, env).await,
    }
}

async fn fleet_verb(command: FleetCommand, env: &Env) -> Verb {
    match command {
        FleetCommand::Init(args) => joining::init(args, env).await,
        FleetCommand::Invite(args) => joining::invite(args, env).await,
        FleetCommand::Join(args) => joining::join(args, env).await,
        FleetCommand::Leave(args) => joining::leave(args, env).await,
        FleetCommand::Invitations(args) => joining::invitations(args, env).await,
        FleetCommand::Admit => joining::admit_by_hand(),
        FleetCommand::Door(_) => Err(Failure::usage("the door is not a short verb")),
    }
}

async fn registry_verb(command: RegistryCommand, env: &Env) -> Verb {
    match command {
        RegistryCommand::Validate(args) => registry::validate(args, env).await,
        RegistryCommand::Push(args) => registry::push(args, env).await,
        RegistryCommand::Pull(args) => registry::pull(args, env).await,
        RegistryCommand::Myself(args) => registry::myself(args, env).await,
        RegistryCommand::Set(args) => registry::set(args, env).await,
        RegistryCommand::Host(command) => host_verb(command, env).await,
        RegistryCommand::Import(args) => registry::import(args, env).await,
        RegistryCommand::Doctor(args) => registry::doctor(args, env).await,
        RegistryCommand::BeaconAge(args) => registry::beacon_age(args, env).await,
        RegistryCommand::Holders(args) => registry::holders(args, env).await,
        RegistryCommand::History(args) => registry::history(args, env).await,
        RegistryCommand::Diff(args) => registry::diff(args, env).await,
        RegistryCommand::Rollback(args) => registry::rollback(args, env).await,
        RegistryCommand::Promote(args) => registry::promote(args, env).await,
    }
}

async fn host_verb(command: HostCommand, env: &Env) -> Verb {
    match command {
        HostCommand::Add(args) => registry::host_add(args, env).await,
        HostCommand::Show(args) => registry::host_show(args, env).await,
        HostCommand::Remove(args) => registry::host_remove(args, env).await,
        HostCommand::Path(PathCommand::List(args)) => registry::path_list(args, env).await,
        HostCommand::Path(PathCommand::Set(args)) => registry::path_set(args, env).await,
        HostCommand::Path(PathCommand::Remove(args)) => registry::path_remove(args, env).await,
    }
}

async fn fleet_host_verb(command: HostVerb, env: &Env) -> Verb {
    match command {
        HostVerb::Inventory(args) => host::inventory(args, env).await,
        HostVerb::Exec(args) => host::exec(args, env).await,
        HostVerb::Ping(args) => host::ping(args, env).await,
    }
}

async fn database_verb(command: DatabaseCommand, env: &Env) -> Verb {
    match command {
        DatabaseCommand::List(args) => database::list(args, env).await,
        DatabaseCommand::Resolve(args) => database::resolve(args, env).await,
        DatabaseCommand::Declare(args) => database::declare(args, env).await,
        DatabaseCommand::Remove(args) => database::remove(args, env).await,
        DatabaseCommand::Grant(args) => database::grant(args, env).await,
        DatabaseCommand::Revoke(args) => database::revoke(args, env).await,
    }
}

async fn resolver_verb(command: ResolverCommand, env: &Env) -> Verb {
    match command {
        ResolverCommand::Status(args) => resolver::status(args, env).await,
        ResolverCommand::Resolve(args) => resolver::resolve(args, env).await,
        ResolverCommand::Snapshot(args) => resolver::snapshot(args, env).await,
        ResolverCommand::ApiReassign(args) => resolver::api_reassign(args, env).await,
        ResolverCommand::Relay(args) => resolver::relay(args, env).await,
        ResolverCommand::Watch => resolver::watch(env).await,
        ResolverCommand::Stop(args) => resolver::stop(args, env).await,
        ResolverCommand::Restart(args) => resolver::restart(args, env).await,
        ResolverCommand::Install(args) => resolver::install(args, env).await,
        ResolverCommand::Uninstall(args) => resolver::uninstall(args, env).await,
        ResolverCommand::Serve(_) => Err(Failure::usage("the daemon is not a short verb")),
    }
}

async fn route_verb(command: RouteCommand, env: &Env) -> Verb {
    match command {
        RouteCommand::List(args) => route::list(args, env).await,
        RouteCommand::Open(args) => route::open(args, env).await,
        RouteCommand::Close(args) => route::close(args, env).await,
    }
}

async fn placement_verb(command: PlacementCommand, env: &Env) -> Verb {
    match command {
        PlacementCommand::Move(args) => placement::movement(args, env).await,
        PlacementCommand::Evict(args) => placement::evict(args, env).await,
        PlacementCommand::Status(args) => placement::status(args, env).await,
        PlacementCommand::Recover(args) => placement::recover(args, env).await,
    }
}

async fn tls_verb(command: TlsCommand, env: &Env) -> Verb {
    match command {
        TlsCommand::Init(args) => tls::init(args, env).await,
        TlsCommand::Trust(args) => tls::trust(args, env).await,
        TlsCommand::Export(args) => tls::export(args, env).await,
        TlsCommand::Status(args) => tls::status(args, env).await,
    }
}

async fn vault_verb(command: VaultCommand, env: &Env) -> Verb {
    match command {
        VaultCommand::Init(args) => vault::init(args, env).await,
        VaultCommand::Put(args) => vault::put(args, env).await,
        VaultCommand::Get(args) => vault::get(args, env).await,
        VaultCommand::List(args) => vault::list(args, env).await,
        VaultCommand::Remove(args) => vault::remove(args, env).await,
        VaultCommand::Grant(args) => vault::grant(args, env).await,
        VaultCommand::Revoke(args) => vault::revoke(args, env).await,
        VaultCommand::Serve(args) => vault::serve(args, env).await,
    }
}

/// Runs a short verb on one thread.
fn verb(log: &LogArgs, work: impl Future<Output = Verb>) -> Verb {
    let _guard = ui::start_log(log, LogLevel::Warn)?;
    on_one_thread(work)
}

/// As [`verb`], with a log only where a file is named.
fn quiet_verb(log: &LogArgs, work: impl Future<Output = Verb>) -> Verb {
    let _guard = if log.log_file.is_some() { ui::start_log(log, LogLevel::Warn)? } else { None };
    on_one_thread(work)
}

fn on_one_thread<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::here(format!("cannot start the async runtime: {e}")))?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

fn finish(voice: Voice, result: &Verb) -> ExitCode {
    if let Err(failure) = result {
        ui::failure(voice, failure);
    }
    ExitCode::from(exit::code(voice, result))
}

/// clap's own ends: help and version are done, anything else is a mistake on the command line.
fn refused(voice: Voice, error: &clap::Error) -> ExitCode {
    let result = if ui::clap(voice, error) { Ok(Outcome::Done) } else { Err(Failure::usage("")) };
    ExitCode::from(exit::code(voice, &result))
}
