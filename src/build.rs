//! What `stado --version` says of the build. The commit is told by whoever builds (`STADO_COMMIT`), or read from the working
//! copy for a release build; a build for work on the code says that it is one, instead of naming a commit it has gone past.
#![allow(clippy::print_stdout, reason = "this is how a build script answers")]
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=STADO_COMMIT");
    println!("cargo:rerun-if-changed=src/build.rs");
    let get = |name: &str| std::env::var(name).unwrap_or_default();
    let profile = get("PROFILE");
    let commit = match get("STADO_COMMIT") {
        told if !told.is_empty() => told,
        _ if profile == "release" => from_git().unwrap_or_else(|| "unknown".to_owned()),
        _ => "uncommitted work".to_owned(),
    };
    println!("cargo:rustc-env=STADO_BUILD_COMMIT={commit}");
    println!("cargo:rustc-env=STADO_BUILD_PROFILE={profile}");
    println!("cargo:rustc-env=STADO_BUILD_TARGET={}", get("TARGET"));
    let compiler = said(Command::new(get("RUSTC")).arg("--version")).unwrap_or_else(|| "rustc unknown".to_owned());
    println!("cargo:rustc-env=STADO_BUILD_RUSTC={compiler}");
}

/// The commit of the working copy, marked when it was changed since; watched, so that a new commit is seen.
fn from_git() -> Option<String> {
    let git = |args: &[&str]| said(Command::new("git").args(args));
    for file in ["HEAD", "index"] {
        println!("cargo:rerun-if-changed={}", git(&["rev-parse", "--git-path", file])?);
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    Some(if changed { format!("{commit} and changes") } else { commit })
}

/// The first line of what a program prints, when it ends well.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.lines().next().unwrap_or_default().to_owned())
}
