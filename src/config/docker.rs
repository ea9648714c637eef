//! Where the container engine is, as the `docker` command reads it from the environment.
use super::{ConfigError, Env};
use stado_resolver::docker::{Lookup, usual_sockets};

/// `DOCKER_HOST`, `DOCKER_CONTEXT`, `DOCKER_CONFIG`, `DOCKER_TLS_VERIFY`, and the usual sockets.
pub(crate) fn docker_lookup(env: &Env) -> Result<Lookup, ConfigError> {
    let home = env.home().ok();
    let config_dir = env.path("DOCKER_CONFIG").or_else(|| home.as_ref().map(|home| home.join(".docker")));
    let runtime_dir = env.path("XDG_RUNTIME_DIR").filter(|dir| dir.is_absolute());
    Ok(Lookup {
        host: env.text("DOCKER_HOST")?,
        context: env.text("DOCKER_CONTEXT")?,
        tls: env.raw("DOCKER_TLS_VERIFY").is_some(),
        config_dir,
        sockets: usual_sockets(home.as_deref(), runtime_dir.as_deref()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_engine_is_looked_for_where_docker_looks() {
        let found = docker_lookup(&Env::of([("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/user/7")])).unwrap();
        assert_eq!(found.config_dir.as_deref(), Some(Path::new("/h/.docker")));
        assert!(found.sockets.contains(&"/run/user/7/docker.sock".into()), "{found:?}");
        let set = Env::of([("DOCKER_HOST", "unix:///d"), ("DOCKER_CONFIG", "/c"), ("DOCKER_TLS_VERIFY", "1")]);
        let found = docker_lookup(&set).unwrap();
        assert_eq!((found.host.as_deref(), found.config_dir.as_deref()), (Some("unix:///d"), Some(Path::new("/c"))));
        assert!(found.tls);
    }
}
