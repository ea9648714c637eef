//! haproxy in TCP mode, two threads as there are processors, with and without splicing.
use super::Pair;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

pub fn command(home: &Path, pairs: &[Pair], splice: bool) -> Command {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    // A spliced connection takes four descriptors.
    let most = if splice { 4900 } else { 8000 };
    let mut text = format!(
        "global\n  maxconn {most}\n  nbthread {threads}\ndefaults\n  mode tcp\n  maxconn {most}\n  backlog 4096\n  timeout connect 3s\n  \
         timeout client 1h\n  timeout server 1h\n"
    );
    if splice {
        text += "  option splice-auto\n";
    }
    for (n, (front, back)) in pairs.iter().enumerate() {
        write!(text, "listen s{n}\n  bind {front}\n  server s{n} {back}\n").unwrap();
    }
    let file = home.join("haproxy.cfg");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new("haproxy");
    command.args(["-db", "-q", "-f"]).arg(file);
    command
}
