//! `io.devmesh.http-host` templates. What is filled in stays one label of the hostname, because a certificate for
//! `*.dev.example.com` covers exactly one (`mesh.md`, "The shared HTTP proxy and TLS").
use crate::http::hostname::{LABEL_MAX, slug};

/// What a template can name.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words<'a> {
    /// `{name}`: the service name.
    pub name: &'a str,
    /// `{container}`: the container's name.
    pub container: &'a str,
    /// `{project}`: the Compose project; empty without Compose.
    pub project: &'a str,
    /// `{service}`: the Compose service; empty without Compose.
    pub service: &'a str,
}

/// Replaces every `{word}`. `checkout.api` becomes `checkout-api`. A text without braces is returned as it is.
pub fn fill(template: &str, words: &Words<'_>) -> Result<String, String> {
    if !template.contains(['{', '}']) {
        return Ok(template.to_owned());
    }
    let mut host = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (word, tail) = after.split_once('}').ok_or("a { without its }")?;
        host.push_str(before);
        host.push_str(&value(word, words)?);
        rest = tail;
    }
    host.push_str(rest);
    if host.contains('}') {
        return Err("a } without its {".into());
    }
    match host.split('.').find(|label| label.len() > LABEL_MAX) {
        Some(label) => Err(format!("{label} is longer than {LABEL_MAX} characters")),
        None => Ok(host),
    }
}

fn value(word: &str, words: &Words<'_>) -> Result<String, String> {
    let text = match word {
        "name" => words.name,
        "container" => words.container,
        "project" => words.project,
        "service" => words.service,
        _ => return Err(format!("{{{word}}} is not one of {{name}}, {{container}}, {{project}}, {{service}}")),
    };
    match slug(text) {
        slug if slug.is_empty() && matches!(word, "project" | "service") => {
            Err(format!("{{{word}}} has no value: the container was not made by Compose"))
        }
        slug if slug.is_empty() => Err(format!("{{{word}}} has no letter or digit")),
        slug => Ok(slug),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WORDS: Words<'_> = Words { name: "checkout.api", container: "shop_web_1", project: "shop", service: "web" };

    #[test]
    fn what_is_filled_in_is_one_label() {
        assert_eq!(fill("{name}.dev.example.com", &WORDS).unwrap(), "checkout-api.dev.example.com");
        assert_eq!(fill("{service}-{project}.test", &WORDS).unwrap(), "web-shop.test");
        assert_eq!(fill("{container}.test", &WORDS).unwrap(), "shop-web-1.test");
        assert_eq!(fill("plain.test", &WORDS).unwrap(), "plain.test");
    }

    #[test]
    fn what_cannot_be_filled_says_why() {
        let error = |text: &str, words: &Words<'_>| fill(text, words).unwrap_err();
        assert!(error("{nam}.test", &WORDS).starts_with("{nam} is not one of {name}"));
        assert_eq!(error("{name.test", &WORDS), "a { without its }");
        assert_eq!(error("name}.test", &WORDS), "a } without its {");
        assert_eq!(error("a}{name}", &WORDS), "a } without its {");
        assert!(error("{project}.test", &Words { project: "", ..WORDS }).contains("not made by Compose"));
        assert!(error("{name}.test", &Words { name: &"a".repeat(64), ..WORDS }).contains("longer than 63"));
    }

    proptest! {
        #[test]
        fn a_filled_word_never_adds_a_label(name in ".{0,80}") {
            if let Ok(host) = fill("{name}.dev.test", &Words { name: &name, ..WORDS }) {
                prop_assert_eq!(host.split('.').count(), 3);
                prop_assert!(host.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b)));
            }
        }
    }
}
