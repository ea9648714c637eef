//! What the documentation claims by a test's name is a test.
use std::collections::BTreeSet;
use std::path::Path;

fn sources(dir: &Path, found: &mut String) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_test_that_a_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = String::new();
    ["src", "fleet/src", "resolver/src", "tests/it"].iter().for_each(|dir| sources(&root.join(dir), &mut code));
    for page in ["docs/outages.md", "docs/data-path.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        // Nothing else in backquotes has four underscores.
        let named: BTreeSet<&str> =
            text.split('`').skip(1).step_by(2).filter(|t| t.matches('_').count() >= 4).collect();
        assert!(named.len() > 30, "{page}: {named:?}");
        let missing: Vec<_> = named.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
        assert!(missing.is_empty(), "{page} names tests that are not there: {missing:?}");
    }
}
