//! Tests that every published number of a built-in study is a row of the page `docs/src/published.md`, and that every row
//! of this page is a number of a study.

use std::path::Path;
use tailbound_model::{FigureUnit, Nanos, Plan, Published, PublishedFigures, PublishedNumber};
use tailbound_study::{embedded, load_str};

/// One published number: result, what the number is, the number, and its unit.
type Row = [String; 4];

fn number(of: PublishedNumber) -> String {
    match (of.low, of.high) {
        (Some(low), Some(high)) if low == high => low.to_string(),
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (None, Some(high)) => format!("below {high}"),
        (Some(low), None) => format!("above {low}"),
        (None, None) => String::new(),
    }
}

fn us(of: [Nanos; 2]) -> String {
    let [low, high] = of.map(|ns| Some(ns.0 as f64 / 1e3));
    number(PublishedNumber { low, high })
}

fn figures(of: &PublishedFigures) -> Vec<(&'static str, String)> {
    let all = [("mean", of.mean), ("mean above the baseline", of.mean_above), ("sd", of.stddev), ("maximum", of.max)];
    all.into_iter().filter_map(|(what, pair)| Some((what, us(pair?)))).collect()
}

/// The rows of the page for one published result.
fn rows_of(plan: &Plan, published: &Published) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |what: &str, number: &str, unit: &str| {
        rows.push([published.name.as_str(), what, number, unit].map(str::to_owned));
    };
    if let Some(text) = &published.text {
        add("text", text, "");
    }
    if !published.histogram.is_empty() {
        let bins = plan.report.histogram.expect("the bins of the study");
        let counts: Vec<String> = published.histogram.iter().map(u64::to_string).collect();
        add(&format!("bins of {}", bins.bin), &counts.join(", "), "messages");
    }
    published.patterns.iter().for_each(|(pattern, runs)| add(pattern.words(), &runs.to_string(), "runs"));
    for (what, number) in published.figures.iter().flat_map(figures) {
        add(what, &number, FigureUnit::Us.symbol());
    }
    if let Some(table) = &published.table {
        for row in &table.rows {
            for (column, cell) in table.columns.iter().zip(&row.cells) {
                let Some(cell) = cell else { continue };
                add(&format!("{}, {}", row.name, column.name), &number(*cell), column.unit.symbol());
            }
        }
    }
    rows
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/published.md");
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The text of the page about one study: from the heading with the name of the study to the next heading.
fn section<'a>(page: &'a str, study: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("\n## `{study}`\n"))?;
    Some(rest.split("\n## ").next().unwrap_or(rest))
}

/// The rows of the tables with four columns in a section, without their heads.
fn rows_in(section: &str) -> Vec<Row> {
    let cells = |line: &str| -> Option<Row> {
        let inner = line.strip_prefix("| ")?.strip_suffix('|')?;
        let cells: Vec<String> = inner.split('|').map(|cell| cell.trim().to_owned()).collect();
        cells.try_into().ok()
    };
    section.lines().filter_map(cells).filter(|row| row[0] != "result").collect()
}

fn plans() -> impl Iterator<Item = Plan> {
    embedded().iter().map(|(name, text)| {
        load_str(&format!("{name}.yaml"), text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"))
    })
}

#[test]
fn the_page_of_published_numbers_has_the_numbers_of_the_studies() {
    let page = page();
    let mut studies = Vec::new();
    for plan in plans().filter(|plan| !plan.report.published.is_empty()) {
        let wanted: Vec<Row> = plan.report.published.iter().flat_map(|p| rows_of(&plan, p)).collect();
        let lines: Vec<String> = wanted.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
        let Some(section) = section(&page, &plan.study) else {
            panic!("the page has no section `{}`; its rows:\n{}", plan.study, lines.join("\n"))
        };
        assert_eq!(rows_in(section), wanted, "{}; the rows of the study:\n{}", plan.study, lines.join("\n"));
        for source in plan.report.published.iter().filter_map(|p| p.source.as_ref()) {
            assert!(section.contains(source.as_str()), "{}: the page does not name `{source}`", plan.study);
        }
        studies.push(plan.study);
    }
    assert!(studies.len() >= 9, "{studies:?}");
    // No section is left over, so that no number of the page is without a study.
    let sections: Vec<&str> = page.lines().filter_map(|l| l.strip_prefix("## `")?.strip_suffix('`')).collect();
    assert_eq!(sections, studies);
}

/// Test that the comparison finds a number that differs, on either side.
#[test]
fn a_number_that_differs_is_found() {
    let plan = plans().find(|plan| plan.study == "kubernetes-latency").expect("the study");
    let wanted: Vec<Row> = plan.report.published.iter().flat_map(|p| rows_of(&plan, p)).collect();
    let page = page();
    let found = section(&page, "kubernetes-latency").expect("its section");
    assert_eq!(rows_in(found), wanted);
    assert_ne!(rows_in(&found.replace("37 to 69", "37 to 68")), wanted);
    let mut changed = plan.clone();
    let table = changed.report.published[0].table.as_mut().expect("a table");
    table.rows[0].cells[0] = Some(PublishedNumber { low: Some(38.0), high: Some(69.0) });
    assert_ne!(rows_in(found), changed.report.published.iter().flat_map(|p| rows_of(&changed, p)).collect::<Vec<_>>());
    // A row that no study has.
    let more = format!("{found}| other | text | 1 | us |\n");
    assert_ne!(rows_in(&more), wanted);
}
