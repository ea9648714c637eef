//! The package: built from the programs under test, unpacked, installed, and used from there.
use crate::support::home::{Home, STADO};
use crate::support::process::{Run, run};
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, program, wait_until};
use std::path::Path;

/// The package's file.
fn package(home: &Home) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/package/build");
    let from = Path::new(STADO).parent().unwrap().to_str().unwrap();
    let output = home.file("out");
    let made = run(&mut home.command(script, &["--from", from, "--quick", "--output", output.to_str().unwrap()])).ok();
    made.stdout.lines().find(|line| line.ends_with(".deb")).unwrap().to_owned()
}

#[test]
fn the_package_has_programs_pages_and_completions_that_work() {
    needs!("dpkg-deb");
    let home = Home::new();
    let package = &package(&home);
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

#[test]
fn dpkg_installs_it_into_a_system_where_it_serves_and_removes_it_whole() {
    needs!("dpkg-deb", "root");
    let home = Home::new();
    let package = package(&home);
    let root = home.file("root");
    for dir in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(root.join("var/lib/dpkg").join(dir)).unwrap();
    }
    std::fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let at = format!("--root={}", root.display());
    // Its dependencies are copied below: the packages that bring them are not installed there.
    let dpkg = |args: &[&str]| run(&mut home.command(program("dpkg").unwrap(), &[&[at.as_str()], args].concat()));
    dpkg(&["--force-depends", "-i", &package]).ok();
    assert!(dpkg(&["-s", "stado"]).ok().stdout.contains("\nStatus: install ok installed\n"));
    let linked = run(&mut home.command(program("ldd").unwrap(), &[root.join("usr/bin/stado").to_str().unwrap()])).ok();
    for library in linked.stdout.split_whitespace().filter(|word| word.starts_with('/')) {
        let copy = root.join(library.trim_start_matches('/'));
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(library, copy).unwrap();
    }

    // Nothing else is in that system.
    std::fs::create_dir_all(root.join(home.path().strip_prefix("/").unwrap())).unwrap();
    let chroot = program("chroot").unwrap();
    let words = |args: &[&str]| -> Vec<String> {
        [&[root.to_str().unwrap()], args].concat().into_iter().map(str::to_owned).collect()
    };
    let inside = |args: &[&str]| -> Run {
        let words = words(args);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = home.command(&chroot, &words);
        run(command.current_dir("/"))
    };
    assert!(inside(&["/usr/bin/stado", "--version"]).ok().stdout.starts_with("stado "));
    let serve = words(&["/usr/bin/devmeshd", "serve"]);
    let serve: Vec<&str> = serve.iter().map(String::as_str).collect();
    let daemon = home.start("devmeshd", &chroot, &serve);
    wait_until("it answers", PATIENCE, || inside(&["/usr/bin/devmesh", "health"]).code == 0);
    let backend = echo("there").to_string();
    inside(&["/usr/bin/devmesh", "register", "--name", "db", "--backend", &backend, "--once"]).ok();
    let address = inside(&["/usr/bin/devmesh", "services", "resolve", "db", "--raw"]).ok().stdout;
    assert_eq!(ask(address.trim(), "x").as_deref(), Some("there:x"));
    assert!(daemon.stop().success());

    dpkg(&["-r", "stado"]).ok();
    let left: Vec<_> = files(&root.join("usr"));
    assert_eq!(left, Vec::<std::path::PathBuf>::new(), "what it brought is gone");
}

/// Every file below a folder that may be gone.
fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
