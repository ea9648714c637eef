//! nginx with its stream module, a worker for each processor.
use super::Pair;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The stream module where Debian keeps it.
pub fn module() -> Option<PathBuf> {
    let file = PathBuf::from("/usr/lib/nginx/modules/ngx_stream_module.so");
    file.exists().then_some(file)
}

pub fn command(home: &Path, pairs: &[Pair]) -> Command {
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let module = module().unwrap_or_default();
    let home = home.display();
    let mut text = format!(
        "{user}load_module {};\npid {home}/pid;\nerror_log {home}/log;\ndaemon off;\nworker_processes auto;\n\
         worker_rlimit_nofile 18000;\nevents {{ worker_connections 9000; }}\nstream {{\n  access_log off;\n  \
         proxy_connect_timeout 3s;\n  proxy_timeout 1h;\n",
        module.display()
    );
    for (front, back) in pairs {
        writeln!(text, "  server {{ listen {front} backlog=4096; proxy_pass {back}; }}").unwrap();
    }
    text += "}\n";
    let file = format!("{home}/nginx.conf");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new("nginx");
    command.args(["-c", &file, "-p", &home.to_string()]);
    command
}
