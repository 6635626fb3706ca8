//! Reads figures from the output of a benchmark tool.

use crate::difference;
use crate::format::{Figure, FigureSource};
use crate::{Tool, ToolError};
use regex::Regex;
use serde_json::Value;
use tailbound_model::{ToolFigure, ToolWindow};

/// Maximum number of characters of an output line that an error message shows.
const SHOWN: usize = 120;

/// Reads the figures in the output of a tool, at the positions that the tool file describes.
///
/// # Errors
/// A figure is missing or is not a number; the error contains the expected and the found text.
pub fn figures(tool: &Tool, output: &str) -> Result<Vec<ToolFigure>, ToolError> {
    let output = strip_colours(output);
    let mut figures = Vec::new();
    for figure in &tool.figures {
        let found = match &figure.at {
            FigureSource::Line(pattern) => lines(&output, pattern),
            FigureSource::Json(pointer) => json(&output, pointer),
            FigureSource::Column(head) => column(&output, head),
            FigureSource::Difference(pattern) => differences(&output, pattern, &figure.statistic),
            FigureSource::Count(pattern) => count(&output, pattern),
        };
        let wrong = |came: String| ToolError::Output { tool: tool.tool.clone(), expected: named(figure), came };
        let texts = found.map_err(wrong)?;
        if texts.is_empty() {
            if figure.optional {
                continue;
            }
            return Err(wrong(came(&output)));
        }
        let (what, scale) = tool.scale(figure).map_err(|problem| wrong(problem.what))?;
        let mut values = Vec::new();
        for (line, text) in texts {
            let value: f64 = text.trim().parse().map_err(|_| wrong(format!("line {line} has `{}`", cut(&text))))?;
            if !value.is_finite() {
                return Err(wrong(format!("line {line} has `{}`", cut(&text))));
            }
            values.push(value * scale);
        }
        if tool.definition.window == ToolWindow::WholeRun && values.len() > 1 {
            return Err(wrong(format!("{} values were found in place of one for the whole run", values.len())));
        }
        figures.push(ToolFigure { what, statistic: figure.statistic.clone(), values });
    }
    Ok(figures)
}

/// Finds the first line of an output that matches a pattern. Returns the text of the pattern's first group or, if the
/// pattern has no group, the whole match.
pub fn first(pattern: &str, output: &str) -> Option<String> {
    let pattern = Regex::new(pattern).ok()?;
    let output = strip_colours(output);
    let found = output.lines().find_map(|line| pattern.captures(line))?;
    found.get(1).or_else(|| found.get(0)).map(|text| text.as_str().trim().to_owned())
}

fn named(figure: &Figure) -> String {
    let at = match &figure.at {
        FigureSource::Line(pattern) => format!("a line like `{pattern}`"),
        FigureSource::Json(pointer) => format!("a number at `{pointer}` of a JSON document"),
        FigureSource::Column(head) => format!("a column `{head}` of a CSV table"),
        FigureSource::Difference(pattern) => format!("lines like `{pattern}` with two times"),
        FigureSource::Count(pattern) => format!("lines like `{pattern}`"),
    };
    format!("{at} ({} {})", figure.is.word(), figure.statistic)
}

/// Makes a short description of a tool's output, for an error message.
fn came(output: &str) -> String {
    let lines = output.lines().filter(|l| !l.trim().is_empty()).count();
    match output.lines().rfind(|l| !l.trim().is_empty()) {
        Some(only) if lines == 1 => format!("the output has only the line `{}`", cut(only)),
        Some(last) => format!("the output has {lines} lines, and the last line is `{}`", cut(last)),
        None => "the output is empty".into(),
    }
}

fn cut(line: &str) -> String {
    let mut text: String = line.trim().chars().take(SHOWN).collect();
    if line.trim().chars().count() > SHOWN {
        text.push_str("...");
    }
    text
}

/// The places at which a figure was found in the output of a tool: line number and text of each place.
type Found = Vec<(usize, String)>;

fn lines(output: &str, pattern: &str) -> Result<Found, String> {
    let pattern = Regex::new(pattern).map_err(|e| e.to_string())?;
    let matched = output.lines().enumerate().filter_map(|(at, line)| {
        let text = pattern.captures(line)?.get(1)?.as_str().to_owned();
        Some((at + 1, text))
    });
    Ok(matched.collect())
}

/// Finds the statistic of the differences between the second and the first group of a pattern, over all lines that match.
fn differences(output: &str, pattern: &str, statistic: &str) -> Result<Found, String> {
    let pattern = Regex::new(pattern).map_err(|e| e.to_string())?;
    let mut all = Vec::new();
    for (at, line) in output.lines().enumerate() {
        let Some(found) = pattern.captures(line) else { continue };
        let time = |group| found.get(group).and_then(|text| difference::number(text.as_str()));
        let (Some(first), Some(second)) = (time(1), time(2)) else {
            return Err(format!("line {} has `{}`", at + 1, cut(line)));
        };
        all.push(second - first);
    }
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let value = difference::statistic_of(all, statistic);
    value.map(|text| vec![(1, text)]).ok_or_else(|| format!("`{statistic}` is no statistic of several times"))
}

/// The number of lines that match a pattern.
fn count(output: &str, pattern: &str) -> Result<Found, String> {
    let pattern = Regex::new(pattern).map_err(|e| e.to_string())?;
    Ok(vec![(1, output.lines().filter(|line| pattern.is_match(line)).count().to_string())])
}

/// Finds the number at a JSON Pointer. The JSON document begins at the first brace, because programs print other lines
/// before it.
fn json(output: &str, pointer: &str) -> Result<Found, String> {
    let Some(start) = output.find('{') else { return Err(came(output)) };
    let before = output[..start].lines().count();
    let mut documents = serde_json::Deserializer::from_str(&output[start..]).into_iter::<Value>();
    let document = match documents.next() {
        Some(Ok(document)) => document,
        Some(Err(e)) => {
            return Err(format!("line {} is not JSON: {e}", before + e.line().max(1) - usize::from(before > 0)));
        }
        None => return Err(came(output)),
    };
    let found = match document.pointer(pointer) {
        Some(Value::Number(n)) => vec![(1, n.to_string())],
        Some(Value::String(s)) => vec![(1, s.clone())],
        Some(other) => return Err(format!("`{}` is there", cut(&other.to_string()))),
        None => Vec::new(),
    };
    Ok(found)
}

/// Finds the values in a column of a CSV table. The table begins at the first line that contains the header, and ends
/// at the first line with fewer columns.
fn column(output: &str, head: &str) -> Result<Found, String> {
    let has = |line: &str| line.split(',').any(|c| c.trim() == head);
    let Some((first, _)) = output.lines().enumerate().find(|(_, line)| has(line)) else { return Ok(Vec::new()) };
    let table: Vec<&str> = output.lines().skip(first).collect();
    let text = table.join("\n");
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|e| e.to_string())?.clone();
    let Some(at) = headers.iter().position(|h| h == head) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (number, row) in reader.records().enumerate() {
        let row = row.map_err(|e| format!("line {}: {e}", first + number + 2))?;
        match row.get(at) {
            Some(text) if !text.is_empty() => found.push((first + number + 2, text.to_owned())),
            _ if row.iter().all(str::is_empty) || row.len() < headers.len() => break,
            _ => return Err(format!("line {} has no value in the column `{head}`", first + number + 2)),
        }
    }
    Ok(found)
}

/// Removes the escape sequences that colour a terminal from the output of a tool.
fn strip_colours(output: &str) -> String {
    let mut plain = String::with_capacity(output.len());
    let mut rest = output;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.find(|c: char| c.is_ascii_alphabetic()).map_or("", |end| &after[end + 1..]);
    }
    plain + rest
}
