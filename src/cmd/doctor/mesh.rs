//! The checks of the mesh, with what to do about each.
use super::report::Check;
use crate::args::RowsArgs;
use crate::cmd::service;
use crate::config::Env;
use crate::exit::Failure;

pub(super) async fn checks(args: &RowsArgs, env: &Env) -> Result<Vec<Check>, Failure> {
    let checks = service::mesh_checks(args, env).await?.into_iter().map(|check| {
        let about = (check.name.as_str(), check.name.as_str());
        match check.status {
            "ok" => Check::ok(about, check.detail),
            "skip" => Check::skip(about, check.detail),
            _ => {
                let remedy = check.remedy.unwrap_or_else(|| remedy(&check.name, &check.detail));
                Check::fail(about, check.detail, remedy)
            }
        }
    });
    Ok(checks.collect())
}

/// What to type, by what went wrong.
fn remedy(name: &str, detail: &str) -> String {
    let lower = detail.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let told = match name {
        "docker" | "docker-engine" | "docker-socket" if says(&["permission denied", "eacces"]) => {
            "Let this account use the engine: `sudo usermod -aG docker $USER`, then log in again (that group is as good as root)."
        }
        "docker" | "docker-engine" | "docker-socket" if says(&["no such file", "refused", "not found"]) => {
            "Start the engine: `sudo systemctl start docker` (or Docker Desktop), or `docker.enabled: false` in the mesh's file where there \
             is none."
        }
        "docker-publication-probe" => {
            "Let the engine publish ports on loopback: `docker run --rm -p 127.0.0.1::80 busybox true` shows its own error; containers \
             need `ports: [\"127.0.0.1::PORT\"]`."
        }
        "clock" => "Set the clock by NTP: `sudo timedatectl set-ntp true`, here and where the engine runs.",
        container if container.starts_with("container ") => {
            // The sentence ends with what to do.
            return detail
                .rsplit_once("; ")
                .or_else(|| detail.rsplit_once(": "))
                .map_or(detail, |(_, remedy)| remedy)
                .to_owned();
        }
        "daemon-reachable" => "Start the daemon with `stado resolver serve`, or name its socket with --socket.",
        "loopback-bind" | "loopback-bind-ipv6" => "Bring the loopback interface up (`ip link set lo up`).",
        "socket-dir" => "Make the socket's directory this account's own and writable, or choose another with --socket.",
        "descriptor-limit" => "Raise the limit of open files for the daemon (ulimit -Hn, LimitNOFILE=).",
        "docker" | "docker-engine" => "Start the container engine, or set docker.enabled to false.",
        _ => "Do what its detail says.",
    };
    told.to_owned()
}

#[cfg(test)]
mod tests {
    use super::remedy;

    #[test]
    fn each_finding_has_the_fix_for_its_own_cause() {
        let docker = |detail: &str| remedy("docker-engine", detail);
        assert!(docker("/var/run/docker.sock: Permission denied (os error 13)").contains("usermod -aG docker"));
        assert!(docker("/var/run/docker.sock: No such file or directory").contains("systemctl start docker"));
        assert!(docker("it answers nonsense").contains("docker.enabled"));
        assert!(remedy("clock", "x").contains("set-ntp"));
        let refused = "port 5432 is not published; publish it with 127.0.0.1::5432";
        assert_eq!(remedy("container db", refused), "publish it with 127.0.0.1::5432");
        assert!(remedy("daemon-reachable", "x").contains("stado resolver serve"));
    }
}
