//! The daemons: settings → `daemon::Config` → run until told to stop.
mod again;
mod announce;
mod manager;
mod neighbour;
mod reload;
mod signals;
mod terminal;

use crate::args::{LogArgs, LogLevel, MeshFlags, ResolverServe};
use crate::config::{Backend, Env, FleetFile, HostConfig, MeshLayers, MeshSettings, inherited, object_role};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use announce::Voice;
use manager::{Ending, Manager};
use reload::Reload;
use signals::Signals;
use stado_fleet::authority::Refusals;
use stado_fleet::join::Account;
use stado_resolver::daemon::{self, Config, FleetConfig, Shutdown};
use stado_resolver::{gate, mesh as mesh_room};
use std::sync::Arc;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `stado resolver serve`: the mesh and the fleet of this host.
pub(crate) fn resolver(args: &ResolverServe, log: &LogArgs, env: &Env) -> Verb {
    let layers = MeshLayers::read(&args.mesh, env)?;
    if args.mesh.print_parsed_fields {
        return print_fields(&layers);
    }
    let host = HostConfig::read(env, args.target.as_deref())?;
    let settings = layers.settings(env)?;
    let fleet_side = Some((args.target.clone(), host.clone()));
    let reload = Reload::new(&args.mesh, env, &layers, &settings, fleet_side);
    let fleet = Some(fleet(host, env)?);
    run((&layers, env), settings, reload, fleet, args.mesh.take_over, log, Voice::Person)
}

/// `devmeshd serve`: the mesh alone; nothing of `~/.stado` is touched.
pub(crate) fn mesh(flags: &MeshFlags, log: &LogArgs, env: &Env) -> Verb {
    let layers = MeshLayers::read(flags, env)?;
    if flags.print_parsed_fields {
        return print_fields(&layers);
    }
    let settings = layers.settings(env)?;
    let reload = Reload::new(flags, env, &layers, &settings, None);
    run((&layers, env), settings, reload, None, flags.take_over, log, Voice::Log)
}

fn print_fields(layers: &MeshLayers) -> Verb {
    layers.warnings.iter().for_each(ui::note);
    let lines: Vec<String> = layers.layers.iter().map(|setting| format!("{setting}\n")).collect();
    ui::print(&lines.concat())?;
    Ok(Outcome::Done)
}

fn run(
    (layers, env): (&MeshLayers, &Env),
    settings: MeshSettings,
    reload: Reload,
    fleet: Option<FleetConfig>,
    take_over: bool,
    log: &LogArgs,
    voice: Voice,
) -> Verb {
    // Before there is a second thread: it changes the environment.
    let inherited = inherited();
    let guard = ui::start_log(log, LogLevel::Info)?;
    for warning in layers.warnings.iter().chain(&settings.unserved) {
        tracing::warn!(target: "stado::mesh", warning, "config_warning");
    }
    crate::cmd::limits::raise();
    let config = Config {
        metrics_bind: settings.metrics_bind,
        mesh: mesh_room::Config { tuning: Some(reload.tuning()), ..mesh_config(&settings) },
        docker: settings.docker.clone(),
        http: settings.http.clone(),
        inherited: inherited.clone(),
        fleet,
        version: VERSION,
        take_over,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::here(format!("cannot start the async runtime: {e}")))?;
    let shutdown = Shutdown::new();
    let (manager, tuning) = (Manager::of(env), reload.tuning());
    let signals = Signals::new(shutdown.clone(), Arc::new(reload), manager.clone());
    let ending = signals.clone();
    let result = runtime.block_on(async {
        signals.listen()?;
        manager.keep_fed();
        if let Some(advice) = neighbour::how_to_change_over(&settings).await {
            ui::note(advice);
        }
        let announce = move |event| {
            announce::announce(voice, &event);
            let grace = tuning.borrow().shutdown_timeout;
            manager.event(&event, if ending.wants_restart() { Ending::Restart } else { Ending::Stop(grace) });
        };
        daemon::run(config, announce, shutdown).await?;
        tracing::info!(target: "stado::mesh", "daemon_stopped");
        Ok(Outcome::Done)
    });
    runtime.shutdown_background();
    if result.is_ok() && signals.wants_restart() {
        drop(guard);
        return Err(again::run(&inherited.take_kept()));
    }
    result
}

fn tuning(settings: &MeshSettings) -> mesh_room::Tuning {
    mesh_config(settings).tuning()
}

fn mesh_config(settings: &MeshSettings) -> mesh_room::Config {
    mesh_room::Config {
        socket: settings.socket.clone(),
        state_path: settings.state_path.clone(),
        frontend_host: settings.frontend_host,
        port_min: settings.port_min,
        port_max: settings.port_max,
        lease_ttl: settings.lease_ttl,
        idle_grace: settings.idle_grace,
        shutdown_timeout: settings.shutdown_timeout,
        also_bind: settings.also_bind.clone(),
        beyond_this_machine: settings.beyond_this_machine.clone(),
        version: VERSION,
        tuning: None,
    }
}

fn fleet(host: HostConfig, env: &Env) -> Result<FleetConfig, Failure> {
    let gate_dir = host.stado_home.join("gate");
    let gate = host.gate_bind.map(|bind| gate::Config {
        bind,
        host_key: gate_dir.join("host_ed25519"),
        authorized_keys: gate_dir.join("authorized_keys"),
    });
    let account =
        host.sshd_keys.as_deref().map(|file| crate::cmd::program().map(|program| Account::new(file, &program)));
    let objects = object_role(&FleetFile::find(env)?, env, &host);
    let local = host.storage.backend == Backend::Local;
    Ok(FleetConfig {
        store: host.open_store()?,
        store_url: host.storage.stado_url,
        refusals: local.then(|| Refusals::new(&host.storage.local_path)),
        home: host.stado_home,
        target: host.target,
        asked: host.asked,
        hostname: host.hostname,
        user: host.user,
        link: host.link,
        api_bind: host.api_bind,
        gate,
        account: account.transpose()?,
        objects,
        publish: host.publish,
        paths: host.published,
        forwards_dir: host.forwards_dir,
    })
}
