use std::fmt;

/// Where a value came from, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Built in.
    Defaults,
    /// A configuration file.
    Config,
    /// A `DEVMESH_*` variable.
    Env,
    /// A positional argument.
    Arguments,
    /// A flag.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Defaults => "defaults",
            Self::Config => "config",
            Self::Env => "env",
            Self::Arguments => "args",
            Self::Flag => "flag",
        })
    }
}

/// One setting: every value it was given, weakest source first. Values stay text until the last one is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Name of the flag, without dashes in front.
    pub name: &'static str,
    values: Vec<(Source, String)>,
}

impl Setting {
    /// The value that counts, with its source.
    pub fn effective(&self) -> Option<(Source, &str)> {
        self.values.last().map(|(source, value)| (*source, value.as_str()))
    }
}

/// `tcp-frontend-min: defaults 15000, config 24000, env 24500, flag 25000`
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name)?;
        if self.values.is_empty() {
            return f.write_str(" (not set)");
        }
        for (index, (source, value)) in self.values.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let value = if value.is_empty() { "\"\"" } else { value };
            write!(f, "{comma} {source} {value}")?;
        }
        Ok(())
    }
}

/// All settings of one command, in the order in which they were declared.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    settings: Vec<Setting>,
}

impl Layers {
    /// Declares settings.
    pub fn declare(names: impl IntoIterator<Item = &'static str>) -> Self {
        Self { settings: names.into_iter().map(|name| Setting { name, values: Vec::new() }).collect() }
    }

    /// Gives a setting a value. Sources may arrive in any order; the strongest counts. Undeclared names are ignored.
    pub fn set(&mut self, name: &str, source: Source, value: impl Into<String>) {
        let Some(setting) = self.settings.iter_mut().find(|s| s.name == name) else { return };
        let at = setting.values.partition_point(|(s, _)| *s <= source);
        setting.values.insert(at, (source, value.into()));
    }

    /// The value that counts, with its source.
    pub fn effective(&self, name: &str) -> Option<(Source, &str)> {
        self.settings.iter().find(|s| s.name == name)?.effective()
    }

    /// The value that counts; empty when there is none.
    pub fn text(&self, name: &str) -> &str {
        self.effective(name).map_or("", |(_, value)| value)
    }

    /// Whether somebody, and not the program, chose the value.
    pub fn chosen(&self, name: &str) -> bool {
        self.effective(name).is_some_and(|(source, _)| source > Source::Defaults)
    }

    /// Names of the settings whose value that counts is another one in `other`.
    pub fn changed(&self, other: &Self) -> Vec<&'static str> {
        let differs = |name: &str| self.effective(name).map(|(_, v)| v) != other.effective(name).map(|(_, v)| v);
        self.settings.iter().map(|s| s.name).filter(|name| differs(name)).collect()
    }

    /// All settings.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_source_counts_and_all_are_shown_in_order() {
        let mut layers = Layers::declare(["tcp-frontend-min", "http-cert-file"]);
        layers.set("tcp-frontend-min", Source::Flag, "25000");
        layers.set("tcp-frontend-min", Source::Defaults, "15000");
        layers.set("tcp-frontend-min", Source::Env, "24500");
        layers.set("tcp-frontend-min", Source::Config, "24000");
        assert_eq!(layers.effective("tcp-frontend-min"), Some((Source::Flag, "25000")));
        let lines: Vec<String> = layers.iter().map(ToString::to_string).collect();
        assert_eq!(lines[0], "tcp-frontend-min: defaults 15000, config 24000, env 24500, flag 25000");
        assert_eq!(lines[1], "http-cert-file: (not set)");
        assert!(!layers.chosen("http-cert-file"));
    }
}
