//! Rows as table, json, jsonl, csv, tsv and yaml (mesh contract §3.1).
use crate::args::{Format, OutputArgs};
use crate::exit::Failure;
use comfy_table::{ContentArrangement, Table};
use std::collections::BTreeMap;

/// Rows under named columns. Every cell is text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// Column names, in order.
    pub columns: Vec<String>,
    /// Cells, as many a row as there are columns.
    pub rows: Vec<Vec<String>>,
}

/// Borders of `+---+` and cells of `|`, and no lines between rows.
const GRID: &str = "||--+-++|    ++++++";

impl Rows {
    /// No rows yet.
    pub fn new(columns: &[&str]) -> Self {
        Self { columns: columns.iter().map(|c| (*c).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    #[must_use]
    pub fn with(mut self, row: impl IntoIterator<Item = String>) -> Self {
        self.rows.push(row.into_iter().collect());
        self
    }

    /// Keeps the chosen columns in the chosen order; an unknown one is named with the known ones.
    fn select(&self, fields: &[String]) -> Result<Self, Failure> {
        if fields.is_empty() {
            return Ok(self.clone());
        }
        let positions = fields.iter().map(|field| {
            self.columns.iter().position(|c| c == field.trim()).ok_or_else(|| {
                Failure::usage(format!("no column {field:?}; the columns are {}", self.columns.join(", ")))
            })
        });
        let positions = positions.collect::<Result<Vec<usize>, Failure>>()?;
        let pick = |row: &Vec<String>| positions.iter().filter_map(|p| row.get(*p).cloned()).collect();
        Ok(Self { columns: pick(&self.columns), rows: self.rows.iter().map(pick).collect() })
    }

    /// A row as an object with sorted keys.
    fn objects(&self) -> impl Iterator<Item = BTreeMap<&str, &str>> {
        self.rows
            .iter()
            .map(|row| self.columns.iter().map(String::as_str).zip(row.iter().map(String::as_str)).collect())
    }
}

/// Renders rows as asked.
pub fn render(rows: &Rows, output: &OutputArgs) -> Result<String, Failure> {
    let mut rows = rows.select(&output.output_fields)?;
    if output.max_output_rows > 0 {
        rows.rows.truncate(output.max_output_rows);
    }
    match output.format {
        Format::Table => Ok(table(&rows)),
        Format::Json => json(&rows),
        Format::Jsonl => jsonl(&rows),
        Format::Csv => separated(&rows, b','),
        Format::Tsv => separated(&rows, b'\t'),
        Format::Yaml => serde_norway::to_string(&rows.objects().collect::<Vec<_>>()).map_err(unrenderable),
    }
}

fn table(rows: &Rows) -> String {
    let mut table = Table::new();
    table.load_preset(GRID).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(rows.columns.iter().map(|c| visible(c)));
    for row in &rows.rows {
        table.add_row(row.iter().map(|cell| visible(cell)));
    }
    format!("{table}\n")
}

/// A cell may come from another program and must not steer the terminal.
fn visible(text: &str) -> String {
    super::clean::line(text)
}

fn json(rows: &Rows) -> Result<String, Failure> {
    let objects: Result<Vec<String>, _> = rows.objects().map(|o| serde_json::to_string_pretty(&o)).collect();
    let objects = objects.map_err(unrenderable)?;
    if objects.is_empty() { Ok("[\n]\n".to_owned()) } else { Ok(format!("[\n{}\n]\n", objects.join(",\n"))) }
}

fn jsonl(rows: &Rows) -> Result<String, Failure> {
    rows.objects().map(|o| serde_json::to_string(&o).map(|line| line + "\n").map_err(unrenderable)).collect()
}

fn separated(rows: &Rows, delimiter: u8) -> Result<String, Failure> {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
    for row in std::iter::once(&rows.columns).chain(&rows.rows) {
        writer.write_record(row).map_err(unrenderable)?;
    }
    let bytes = writer.into_inner().map_err(unrenderable)?;
    String::from_utf8(bytes).map_err(unrenderable)
}

fn unrenderable(error: impl std::fmt::Display) -> Failure {
    Failure::here(format!("cannot render the rows: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Rows {
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        Rows::new(&["name", "kind", "endpoint"]).with(row(["checkout.postgres", "tcp", "127.0.0.1:15432"])).with(row([
            "a,\"b",
            "http",
            "http://a.test:8088",
        ]))
    }
    fn rendered(format: Format) -> String {
        render(&rows(), &OutputArgs { format, ..Default::default() }).unwrap()
    }

    #[test]
    fn a_table_is_an_ascii_grid() {
        let expected = "\
+-------------------+------+--------------------+
| name              | kind | endpoint           |
+-------------------+------+--------------------+
| checkout.postgres | tcp  | 127.0.0.1:15432    |
| a,\"b              | http | http://a.test:8088 |
+-------------------+------+--------------------+
";
        assert_eq!(rendered(Format::Table), expected);
    }

    #[test]
    fn json_is_bracket_objects_bracket_with_sorted_keys() {
        let text = rendered(Format::Json);
        assert!(
            text.starts_with("[\n{\n  \"endpoint\": \"127.0.0.1:15432\",\n  \"kind\": \"tcp\",\n  \"name\""),
            "{text}"
        );
        assert!(text.ends_with("}\n]\n"));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value[1]["endpoint"], "http://a.test:8088");
        let none = render(&Rows::new(&["a"]), &OutputArgs { format: Format::Json, ..Default::default() }).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&none).unwrap(), serde_json::json!([]));
    }

    #[test]
    fn lines_and_separated_values() {
        let text = rendered(Format::Jsonl);
        assert_eq!(
            text.lines().next(),
            Some(r#"{"endpoint":"127.0.0.1:15432","kind":"tcp","name":"checkout.postgres"}"#)
        );
        assert_eq!(
            rendered(Format::Csv),
            "name,kind,endpoint\ncheckout.postgres,tcp,127.0.0.1:15432\n\"a,\"\"b\",http,http://a.test:8088\n"
        );
        assert!(rendered(Format::Tsv).starts_with("name\tkind\tendpoint\n"));
    }

    #[test]
    fn yaml_is_a_list() {
        let text = rendered(Format::Yaml);
        assert!(text.starts_with("- endpoint: 127.0.0.1:15432\n  kind: tcp\n  name: checkout.postgres\n"), "{text}");
    }

    #[test]
    fn chosen_columns_keep_their_order_and_rows_their_limit() {
        let output = |fields: &[&str], max| OutputArgs {
            format: Format::Csv,
            output_fields: fields.iter().map(|f| (*f).to_owned()).collect(),
            max_output_rows: max,
        };
        assert_eq!(
            render(&rows(), &output(&["endpoint", "name"], 1)).unwrap(),
            "endpoint,name\n127.0.0.1:15432,checkout.postgres\n"
        );
        let error = render(&rows(), &output(&["port"], 0)).unwrap_err();
        assert_eq!(error.message, "no column \"port\"; the columns are name, kind, endpoint");
    }

    #[test]
    fn a_cell_cannot_steer_the_terminal() {
        let table = render(&Rows::new(&["x"]).with(["\u{1b}[2J\n".to_owned()]), &OutputArgs::default()).unwrap();
        assert!(table.contains("\\u{1b}[2J\\n"), "{table}");
    }
}
