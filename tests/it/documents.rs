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

fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    text.matches('_').count() >= 4 && text.bytes().all(plain)
}

#[test]
fn every_test_that_a_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = String::new();
    ["src", "fleet/src", "resolver/src", "tests/it"].iter().for_each(|dir| sources(&root.join(dir), &mut code));
    for (page, least) in
        [("docs/outages.md", 30), ("docs/data-path.md", 30), ("docs/http-rules.md", 60), ("docs/placement.md", 10)]
    {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        // Nothing else in backquotes is one word with four underscores.
        let named: BTreeSet<&str> = text.split('`').skip(1).step_by(2).filter(|t| is_name(t)).collect();
        assert!(named.len() > least, "{page}: {named:?}");
        let missing: Vec<_> = named.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
        assert!(missing.is_empty(), "{page} names tests that are not there: {missing:?}");
    }
}
