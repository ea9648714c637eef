//! The package: built from the programs under test, unpacked as it would be installed, and used from there.
use crate::support::home::{Home, STADO};
use crate::support::process::run;
use crate::support::program;
use std::path::Path;

#[test]
fn the_package_has_programs_pages_and_completions_that_work() {
    needs!("dpkg-deb");
    let home = Home::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/package/build");
    let from = Path::new(STADO).parent().unwrap().to_str().unwrap();
    let output = home.file("out");
    let made = run(&mut home.command(script, &["--from", from, "--quick", "--output", output.to_str().unwrap()])).ok();
    let package = made.stdout.lines().find(|line| line.ends_with(".deb")).unwrap();
    let root = home.file("root");
    run(&mut home.command(program("dpkg-deb").unwrap(), &["-x", package, root.to_str().unwrap()])).ok();

    let has = |path: &str| std::fs::metadata(root.join(path)).is_ok_and(|file| file.len() > 0);
    for path in [
        "usr/bin/devmesh",
        "usr/bin/devmeshd",
        "usr/share/man/man1/stado.1.gz",
        "usr/share/man/man1/stado-service-resolve.1.gz",
        "usr/share/man/man1/devmeshd-serve.1.gz",
        "usr/share/bash-completion/completions/stado",
        "usr/share/zsh/vendor-completions/_stado",
        "usr/share/fish/vendor_completions.d/stado.fish",
        "usr/share/doc/stado/copyright",
    ] {
        assert!(has(path), "{path} is not in the package");
    }
    let version = run(&mut home.command(root.join("usr/bin/stado"), &["--version"])).ok().stdout;
    for told in ["stado ", "commit ", "profile ", "target ", "compiler rustc "] {
        assert!(version.contains(told), "{told:?} in {version}");
    }
    let control = run(&mut home.command(program("dpkg-deb").unwrap(), &["-f", package, "Package", "Version"])).ok();
    let number = version.lines().next().unwrap().trim_start_matches("stado ");
    assert_eq!(control.stdout, format!("Package: stado\nVersion: {number}\n"));
}
