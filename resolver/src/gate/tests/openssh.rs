//! OpenSSH's client, as people use it by hand.
use super::*;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// `None` (said on stdout) where there is no ssh; a failure where skips are not allowed.
fn ssh(rig: &Rig) -> Option<Command> {
    if !Path::new("/usr/bin/ssh").exists() {
        assert!(std::env::var_os("STADO_NO_SKIPS").is_none_or(|v| v != "1"), "/usr/bin/ssh is missing");
        println!("skipped: /usr/bin/ssh is missing (Debian: apt-get install openssh-client)");
        return None;
    }
    let mut command = Command::new("/usr/bin/ssh");
    command.args(["-F", "/dev/null", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"]);
    command.arg("-i").arg(rig.path("user")).args(["-p", &rig.address.port().to_string()]);
    command.arg("-o").arg(format!("UserKnownHostsFile={}", rig.path("known_hosts").display()));
    command.stdin(std::process::Stdio::null()).kill_on_drop(true);
    Some(command)
}

#[tokio::test]
async fn ssh_runs_a_verb_and_is_refused_a_shell_and_files() {
    let rig = Rig::start().await;
    let Some(mut command) = ssh(&rig) else { return };
    let output = command.args(["127.0.0.1", "stado", "resolver", "snapshot"]).output().await.unwrap();
    assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"resolver snapshot\n"[..], Some(3)));
    let shell = ssh(&rig).unwrap().args(["-T", "127.0.0.1"]).output().await.unwrap();
    assert_eq!(shell.status.code(), Some(126));
    assert!(String::from_utf8_lossy(&shell.stderr).contains("it gives no shell"));
    let sftp = ssh(&rig).unwrap().args(["-s", "127.0.0.1", "sftp"]).output().await.unwrap();
    assert!(!sftp.status.success() && sftp.stdout.is_empty());
}

#[tokio::test]
async fn ssh_forwards_to_a_declared_endpoint_only() {
    let rig = Rig::start().await;
    if ssh(&rig).is_none() {
        return;
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap();
    let through = async |rig: &Rig| ssh(rig).unwrap().args(["-W", &endpoint.to_string(), "127.0.0.1"]).output().await;
    let refused = through(&rig).await.unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the directory places nothing"), "{refused:?}");
    rig.allow(endpoint);
    let serve = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"from the service").await.unwrap();
    });
    assert_eq!(through(&rig).await.unwrap().stdout, b"from the service");
    serve.await.unwrap();
}

#[tokio::test]
async fn ssh_gets_no_remote_forwarding() {
    let rig = Rig::start().await;
    let Some(mut command) = ssh(&rig) else { return };
    let args = ["-o", "ExitOnForwardFailure=yes", "-N", "-R", "0:127.0.0.1:1", "127.0.0.1"];
    let output = tokio::time::timeout(SHORT, command.args(args).output()).await.unwrap().unwrap();
    assert!(!output.status.success());
}
