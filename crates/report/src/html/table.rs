//! Makes HTML tables: heads, cells, and a box around each table that scrolls.

use crate::escape::escape;

/// A table with more columns than this is set in smaller type.
const MANY: usize = 10;

/// On a phone, the rows of a table with more columns than this become cards: each cell is a line with the name of its column.
const WIDE: usize = 3;

/// Makes an HTML table like [`table`] for a page without a script, whose box can be reached and scrolled by keyboard. `label`: name of
/// the box.
pub fn table_of_frame(label: &str, heads: &[Head], rows: &[String]) -> String {
    boxed(&format!(" tabindex=\"0\" role=\"region\" aria-label=\"{}\"", escape(label)), heads, rows)
}

/// Makes an HTML table in a scroll box of its own. Rows are HTML.
pub(crate) fn table(heads: &[Head], rows: &[String]) -> String {
    boxed("", heads, rows)
}

fn boxed(attributes: &str, heads: &[Head], rows: &[String]) -> String {
    let head: String = heads
        .iter()
        .map(|h| {
            let unit =
                if h.unit.is_empty() { String::new() } else { format!(" <span class=\"unit\">{}</span>", h.unit) };
            format!("<th scope=\"col\"{}>{}{unit}</th>", if h.left { " class=\"l\"" } else { "" }, escape(&h.name))
        })
        .collect();
    let classes = [("many", heads.len() > MANY), ("cards", heads.len() > WIDE)];
    let classes: Vec<&str> = classes.into_iter().filter(|(_, is_so)| *is_so).map(|(class, _)| class).collect();
    let class = if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) };
    let rows: String = match heads.len() > WIDE {
        true => rows.iter().map(|row| labelled(row, heads)).collect(),
        false => rows.concat(),
    };
    format!(
        "<div class=\"scroll\"{attributes}><table{class}><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// Gives each cell of a row the name of its column, for cards. A cell over several columns has the name of the first of them, unless it
/// has a name of its own.
fn labelled(row: &str, heads: &[Head]) -> String {
    let mut parts = row.split("<td");
    let mut labelled = parts.next().unwrap_or_default().to_owned();
    let mut column = 0;
    for part in parts {
        let head = heads.get(column).map_or(String::new(), |h| format!("{} {}", h.name, h.unit).trim_end().to_owned());
        let tag = part.split('>').next().unwrap_or_default();
        let span = tag.split_once("colspan=\"").and_then(|(_, rest)| rest.split('"').next()?.parse().ok());
        column += span.unwrap_or(1);
        match tag.contains("data-label=") {
            true => labelled.push_str(&format!("<td{part}")),
            false => labelled.push_str(&format!("<td data-label=\"{}\"{part}", escape(&head))),
        }
    }
    labelled
}

/// HTML of the head of one table column.
pub struct Head {
    name: String,
    unit: &'static str,
    left: bool,
}

/// Makes the head of a table column that contains words.
pub fn left(name: impl Into<String>) -> Head {
    Head { name: name.into(), unit: "", left: true }
}

/// HTML of the head of a table column that contains numbers with one unit.
pub fn right(name: impl Into<String>, unit: &'static str) -> Head {
    Head { name: name.into(), unit, left: false }
}

/// Makes a table cell with words as HTML.
pub(crate) fn words(text: &str) -> String {
    format!("<td class=\"l\">{}</td>", escape(text))
}

/// Makes a table cell with a number as HTML.
pub(crate) fn number(text: &str) -> String {
    format!("<td>{}</td>", escape(text))
}

/// A table whose first column has words and whose others have numbers: the heads of the columns, and the cells of each row.
pub(crate) fn of_cells<const N: usize>(heads: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let side = |(nth, head): (usize, &&str)| if nth == 0 { left(*head) } else { right(*head, "") };
    let heads: Vec<_> = heads.iter().enumerate().map(side).collect();
    let cell = |(nth, text): (usize, &String)| if nth == 0 { words(text) } else { number(text) };
    let row = |cells: [String; N]| format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>());
    table(&heads, &rows.map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_wide_table_have_the_names_of_their_columns() {
        let heads = [left("driver"), right("p50", "us"), right("a < b", ""), left("trials"), left("last")];
        let row = "<tr id=\"c\"><td class=\"l\">udp</td><td>1</td><td colspan=\"2\">none</td><td data-label=\"own\">x</td></tr>\n";
        let wide = table(&heads, &[row.to_owned()]);
        let expected = "<tr id=\"c\"><td data-label=\"driver\" class=\"l\">udp</td><td data-label=\"p50 us\">1</td>\
                        <td data-label=\"a &lt; b\" colspan=\"2\">none</td><td data-label=\"own\">x</td></tr>";
        assert!(wide.contains(expected) && wide.contains("<table class=\"cards\">"), "{wide}");
        let narrow = table(&heads[..3], &[row.replace(" data-label=\"own\"", "")]);
        assert!(!narrow.contains("data-label") && !narrow.contains("cards"), "{narrow}");
    }
}
