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
    let pages = [
        ("docs/outages.md", 30),
        ("docs/data-path.md", 30),
        ("docs/http-rules.md", 60),
        ("docs/placement.md", 10),
        ("docs/status.md", 7),
    ];
    for (page, least) in pages {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        // Nothing else in backquotes is one word with four underscores.
        let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        let named: BTreeSet<&str> = quoted.filter(|t| is_name(t)).collect();
        assert!(named.len() > least, "{page}: {named:?}");
        let missing: Vec<_> = named.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
        assert!(missing.is_empty(), "{page} names tests that are not there: {missing:?}");
    }
}

/// Every page for people.
fn pages() -> Vec<std::path::PathBuf> {
    fn walk(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("README.md")];
    ["docs", "examples", "tests"].iter().for_each(|dir| walk(&root.join(dir), &mut found));
    found
}

/// The targets of a page's links, code left out.
fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        // What stands in backquotes is no link.
        for part in line.split('`').step_by(2).filter(|_| !code) {
            links.extend(part.split("](").skip(1).filter_map(|rest| rest.split(')').next()));
        }
    }
    links
}

/// The name by which a heading is linked to.
fn anchor(heading: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let words: String = heading.trim().to_lowercase().chars().filter(|c| plain(*c)).collect();
    words.replace(' ', "-")
}

#[test]
fn every_link_leads_somewhere() {
    let mut seen = 0;
    let mut dead = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, part) = link.split_once('#').map_or((link, None), |(file, part)| (file, Some(part)));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let there = target.exists()
                && part.is_none_or(|part| {
                    let text = std::fs::read_to_string(&target).unwrap_or_default();
                    text.lines().any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == part)
                });
            seen += 1;
            if !there {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(seen > 100 && dead.is_empty(), "{seen} links, dead: {dead:#?}");
}

#[test]
fn every_page_of_the_documentation_is_in_its_index() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    for folder in ["", "decisions"] {
        let dir = root.join(folder);
        let index = std::fs::read_to_string(dir.join("README.md")).unwrap();
        for entry in std::fs::read_dir(&dir).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let page = name.ends_with(".md") && name != "README.md";
            assert!(!page || index.contains(&format!("({name})")), "{name} is not in {}/README.md", dir.display());
        }
    }
}

#[test]
fn the_sample_changes_name_files_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/contributing.md")).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ") && line.contains('`')).collect();
    assert_eq!(rows.len(), 10, "ten sample changes: {rows:#?}");
    for row in rows {
        let files: Vec<&str> = row.split('`').skip(1).step_by(2).filter(|word| word.contains('/')).collect();
        assert!(!files.is_empty(), "names no file: {row}");
        let missing: Vec<_> = files.iter().filter(|file| !root.join(file).is_file()).collect();
        assert!(missing.is_empty(), "not there: {missing:?} in {row}");
    }
}
