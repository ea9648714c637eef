//! Names of objects: `stado://<namespace>/<key>`.

/// A checked object name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName(String);

/// A namespace that once had a meaning.
const RETIRED: &str = "public";

impl ObjectName {
    /// Namespace `[a-z0-9-]+`, but `public`; a key without empty, `.` or `..` segments, NUL or backslash.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| Err(format!("object name {text:?} {why}"));
        let Some((namespace, key)) = text.strip_prefix("stado://").and_then(|rest| rest.split_once('/')) else {
            return refuse("must be stado://<namespace>/<key>");
        };
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if namespace.is_empty() || !namespace.bytes().all(plain) {
            return refuse("must have a namespace of lowercase letters, digits and dashes");
        }
        if namespace == RETIRED {
            return refuse("is in the namespace 'public', which is retired");
        }
        if key.contains(['\0', '\\']) || key.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return refuse("must have a key without empty, '.' or '..' segments, NUL or backslash");
        }
        Ok(Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_but_to_its_object() {
        assert_eq!(
            ObjectName::parse("stado://probierz/registry.json").unwrap().as_str(),
            "stado://probierz/registry.json"
        );
        assert!(ObjectName::parse("stado://a-1/queue/x y").is_ok());
        for bad in [
            "registry.json",
            "stado://probierz",
            "stado:///x",
            "stado://Big/x",
            "stado://public/x",
            "stado://a/",
            "stado://a//x",
            "stado://a/../x",
            "stado://a/./x",
            "stado://a/x\\y",
            "stado://a/x\0",
            "http://a/x",
        ] {
            assert!(ObjectName::parse(bad).is_err(), "{bad:?}");
        }
    }
}
