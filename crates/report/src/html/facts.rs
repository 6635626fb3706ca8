//! The section of the HTML page about facts of the hosts, clocks and drivers. Facts that differ between hosts come
//! first.

use crate::escape::escape;
use crate::html::table::{left, number, right, table, words};
use std::collections::BTreeSet;
use tailbound_document::number::{count, time};
use tailbound_document::{HostFact, Report};

/// Makes the section of the HTML page with the facts of every host, collapsed and searchable.
pub(crate) fn section(report: &Report) -> String {
    let mut html = String::from(
        "<section id=\"facts\"><h2>Facts</h2>\n<p class=\"lead\">Facts about the hosts, read at the time of the \
            measurement.</p>\n",
    );
    html.push_str("<p><input type=\"search\" placeholder=\"Search facts\" aria-label=\"Search facts\"></p>\n");
    let differ = differing(report);
    html.push_str(&differences(report, &differ));
    let heads = [left("fact"), left("value"), left("read from")];
    for host in &report.facts {
        let rows: Vec<String> = host
            .facts
            .iter()
            .map(|f| {
                let mark = if differ.contains(f.key.as_str()) { " <span class=\"bad\">differs</span>" } else { "" };
                let value = value(f);
                let value = format!("<td class=\"l wrap\">{value}{mark}</td>");
                format!(
                    "<tr>{}{value}<td class=\"l\"><span class=\"quiet\">{}</span></td></tr>\n",
                    words(&f.key),
                    escape(&f.source)
                )
            })
            .collect();
        html.push_str(&format!(
            "<details><summary>Facts of {}: {}</summary>\n{}</details>\n",
            escape(&host.host),
            host.facts.len(),
            table(&heads, &rows)
        ));
    }
    let heads = [
        left("host"),
        left("clock"),
        right("widest conversion", "ns"),
        left(
            "time spans in which the clock \
        is not reliable",
        ),
    ];
    let rows: Vec<String> = report
        .clocks
        .iter()
        .map(|c| {
            let width = c.conversion_width_ns.map_or("nothing converted".into(), |w| count(w.unsigned_abs()));
            let span = |w: &tailbound_document::ClockWindow| {
                let long = time(w.to_ns.saturating_sub(w.from_ns) as f64);
                let change = match w.step_ns {
                    0 if w.between_hosts => "offset or speed against the clock of the ping changed".to_owned(),
                    step if w.between_hosts => {
                        format!("the offset from the clock of the ping changed by {} or more", time(step.abs() as f64))
                    }
                    step => format!("stepped by {}", time(step as f64)),
                };
                format!("trial {}: {long} long, {change}", w.trial)
            };
            let spans: Vec<String> = c.invalid_windows.iter().map(span).collect();
            let spans = if spans.is_empty() {
                words("none")
            } else {
                format!("<td class=\"l bad wrap\">{}</td>", escape(&spans.join("; ")))
            };
            format!("<tr>{}{}{}{spans}</tr>\n", words(&c.host), words(&c.clock), number(&width))
        })
        .collect();
    html.push_str(&format!("<h3>Clocks</h3>\n{}", table(&heads, &rows)));
    for (name, driver) in &report.drivers {
        let text = serde_json::to_string_pretty(driver).unwrap_or_default();
        html.push_str(&format!(
            "<details><summary>Driver {}</summary><pre>{}</pre></details>\n",
            escape(name),
            escape(&text)
        ));
    }
    html.push_str("</section>\n");
    html
}

/// Formats the value of a fact about a host.
fn value(fact: &HostFact) -> String {
    match (&fact.unknown, &fact.value) {
        (Some(why), _) => format!("<span class=\"quiet\">not read: {}</span>", escape(why)),
        (None, serde_json::Value::String(text)) => escape(text),
        (None, serde_json::Value::Bool(flag)) => if *flag { "yes" } else { "no" }.into(),
        (None, other) => escape(&other.to_string()),
    }
}

/// Keys of facts that differ between hosts, or that at least one host does not have.
fn differing(report: &Report) -> BTreeSet<&str> {
    let of = |host: &'_ tailbound_document::Host, key: &str| {
        host.facts.iter().find(|f| f.key == key).map(|f| (f.value.clone(), f.unknown.clone()))
    };
    let keys = report.facts.iter().flat_map(|h| h.facts.iter().map(|f| f.key.as_str()));
    let same = |key: &str| report.facts.windows(2).all(|pair| of(&pair[0], key) == of(&pair[1], key));
    keys.collect::<BTreeSet<&str>>().into_iter().filter(|key| !same(key)).collect()
}

/// Makes the HTML table of the facts that differ between hosts, with one column per host.
fn differences(report: &Report, differ: &BTreeSet<&str>) -> String {
    if report.facts.len() < 2 {
        return String::new();
    }
    if differ.is_empty() {
        return "<p>The hosts agree in every fact.</p>\n".into();
    }
    let heads: Vec<_> = [left("fact")].into_iter().chain(report.facts.iter().map(|h| left(h.host.as_str()))).collect();
    let row = |key: &&str| {
        let cell = |h: &tailbound_document::Host| {
            let fact = h.facts.iter().find(|f| f.key == *key);
            let text = fact.map_or("<span class=\"quiet\">not there</span>".to_owned(), value);
            format!("<td class=\"l wrap\">{text}</td>")
        };
        format!("<tr>{}{}</tr>\n", words(key), report.facts.iter().map(cell).collect::<String>())
    };
    let rows: Vec<String> = differ.iter().map(row).collect();
    format!("<h3 id=\"differences\">Differences between hosts</h3>\n{}", table(&heads, &rows))
}
