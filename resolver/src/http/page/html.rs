//! The form for browsers: one file, no script, nothing fetched, under a policy that allows only its own style.
use super::words::Words;

/// The policy under which a page with this nonce is shown.
pub(super) fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

const STYLE: &str = include_str!("page.css");

/// The page. Every text in it is escaped here.
pub(super) fn draw(words: &Words, nonce: &str) -> String {
    let (title, sentence) = (escape(&words.title()), escape(&words.sentence));
    let mut facts = String::new();
    for (name, value) in &words.facts {
        facts.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value)));
    }
    if !facts.is_empty() {
        facts = format!("<dl>\n{facts}</dl>\n");
    }
    let next = words.next.as_ref().map(|next| format!("<p class=\"next\">{}</p>\n", escape(next))).unwrap_or_default();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style nonce=\"{nonce}\">\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n\
         <p>{sentence}</p>\n{facts}{known}{next}</main>\n<footer>answered by Stado on this machine</footer>\n\
         </body>\n</html>\n",
        known = known(&words.known),
    )
}

fn known(hosts: &[String]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    let items: String = hosts.iter().map(|host| format!("<li>{}</li>\n", escape(host))).collect();
    format!("<h2>Known here</h2>\n<ul>\n{items}</ul>\n")
}

/// A text that is nothing but text, in an element as in a quoted attribute.
pub(in crate::http) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
