//! The order of the modules that `lib.rs` promises.
use std::path::{Path, PathBuf};

/// Source files of a module; tests may look anywhere.
fn sources(at: &Path, all: &mut Vec<PathBuf>) {
    if at.is_dir() {
        for entry in std::fs::read_dir(at).unwrap() {
            sources(&entry.unwrap().path(), all);
        }
    } else if !at.components().any(|part| part.as_os_str().to_string_lossy().contains("tests")) {
        all.push(at.to_owned());
    }
}

#[test]
fn each_module_uses_only_those_before_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = std::fs::read_to_string(root.join("lib.rs")).unwrap();
    let order = lib.split("holds to:").nth(1).unwrap().split("//!\n").next().unwrap();
    let order: Vec<&str> = order.split([',', '/', '!', '.', '\n', ' ']).filter(|word| !word.is_empty()).collect();
    assert!(order.len() > 12 && order.first() == Some(&"name"), "{order:?}");
    for (at, module) in order.iter().enumerate() {
        let mut files = Vec::new();
        for place in [root.join(module), root.join(format!("{module}.rs"))] {
            if place.exists() {
                sources(&place, &mut files);
            }
        }
        assert!(!files.is_empty(), "{module} has no file");
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let used = code.flat_map(|line| line.split("crate::").skip(1));
            for name in used.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap()) {
                let later = order.iter().skip(at + 1).any(|other| *other == name);
                assert!(!later, "{} uses {name}, which comes after {module}", file.display());
            }
        }
    }
}
