//! Makes the HTML page with the list of records.

use crate::picture::{distribution, trend};
use crate::records::Found;
use crate::short::{Short, time};
use crate::target::encode;
use crate::verdicts::Follows;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tailbound_record::Manifest;
use tailbound_report::{date, escape_html as escape, left_head, render_frame, right_head, table_of_frame};

/// Results of the records that have been computed, by directory; a record without round trips has none.
type Shorts = BTreeMap<PathBuf, Option<Short>>;

/// Verdicts about p99 and the run before, by the directory of the later record.
type Verdicts = BTreeMap<PathBuf, String>;

/// Makes the page with the list of the records that match `query`. If `comparable` is true, a reader can choose two
/// records for a comparison.
pub(crate) fn page(
    folder: &str,
    found: &[Found],
    (shorts, verdicts): (&Shorts, &Verdicts),
    query: &str,
    comparable: bool,
) -> String {
    if found.is_empty() {
        return render_frame("Records", &empty(folder));
    }
    let shown: Vec<&Found> = found.iter().filter(|f| f.fits(query)).collect();
    let filter = format!(
        "<form method=\"get\" action=\"/\"><p><input type=\"search\" name=\"q\" value=\"{}\" placeholder=\"Study, driver, \
         level, status\" aria-label=\"Filter\"> <button>Filter</button></p></form>\n",
        escape(query)
    );
    let records = if found.len() == 1 { "record" } else { "records" };
    let number = match shown.len() {
        all if all == found.len() => format!("{all} {records} in {}", escape(folder)),
        some => format!("{some} of {} {records} in {}", found.len(), escape(folder)),
    };
    let readable = found.iter().filter(|f| f.manifest.is_ok()).count();
    let missing = match readable - shorts.len().min(readable) {
        0 => String::new(),
        n => format!(" The results of {n} have not been computed yet: load this page again."),
    };
    let note = "p50, p99, the distribution and the trend of p99 are figures of the worst condition of each record. The verdict \
                about p99 and the run before is the verdict of a comparison of both records.";
    let table = table(found, &shown, (shorts, verdicts), comparable);
    render_frame(
        "Records",
        &format!("{filter}<p class=\"lead\">{number}, the latest first. {note}{missing}</p>\n{table}"),
    )
}

/// Says that there are no records, and how to make one.
fn empty(folder: &str) -> String {
    format!(
        "<p class=\"lead\">There is no record in {}.</p>\n<p>A run makes one, for example <code>tailbound quick --out \
         {0}/first</code>. Records up to three folders deep are listed; load this page again after a run.</p>\n",
        escape(folder)
    )
}

const COLUMNS: [&str; 11] = [
    "record",
    "status",
    "p50",
    "p99",
    "lost",
    "distribution",
    "p99 of this study",
    "p99 and the run before",
    "question",
    "began",
    "as",
];

/// Columns with numbers, which are aligned at the right.
const NUMBERS: [&str; 2] = ["p50", "p99"];

fn table(found: &[Found], shown: &[&Found], (shorts, verdicts): (&Shorts, &Verdicts), comparable: bool) -> String {
    let histories = histories(found, shorts);
    let ends = ends(shorts);
    let rows: Vec<String> = shown
        .iter()
        .map(|f| {
            let none = |why: &str| format!("<td data-label=\"results\" colspan=\"6\" class=\"l quiet\">{why}</td>");
            let result = match shorts.get(&f.dir) {
                None => none("not yet computed"),
                Some(None) => none("no round trips"),
                Some(Some(short)) => result(short, ends, (&histories, verdicts), f),
            };
            row(f, &result, comparable)
        })
        .collect();
    let choose = if comparable { &["A", "B"][..] } else { &[] };
    let heads = choose.iter().chain(&COLUMNS).map(|name| match NUMBERS.contains(name) {
        true => right_head(*name, ""),
        false => left_head(*name),
    });
    let table = table_of_frame("Records", &heads.collect::<Vec<_>>(), &rows);
    if comparable {
        format!("<form method=\"get\" action=\"/compare\">{table}<p><button>Compare A with B</button></p></form>\n")
    } else {
        table
    }
}

/// Smallest and largest round trip of all records: the ends of the axis of the distributions, ns.
fn ends(shorts: &Shorts) -> (i64, i64) {
    let buckets = || shorts.values().flatten().flat_map(|s| &s.histogram);
    (buckets().map(|b| b.0).min().unwrap_or(1), buckets().map(|b| b.1).max().unwrap_or(2))
}

/// Records of one study and one worst condition with their p99 and its interval, the earliest first.
type Histories<'a> = BTreeMap<(&'a str, &'a str), Vec<(&'a Found, (i64, i64, Option<i64>))>>;

fn histories<'a>(found: &'a [Found], shorts: &'a Shorts) -> Histories<'a> {
    let mut all = Histories::new();
    // The list has the latest first.
    for f in found.iter().rev() {
        let Some((study, short)) = f.manifest.as_ref().ok().zip(shorts.get(&f.dir).and_then(Option::as_ref)) else {
            continue;
        };
        if let Some(p99) = short.p99_ns {
            all.entry((&study.plan.study, &short.condition)).or_default().push((f, p99));
        }
    }
    all
}

/// Each record of a study with the record of the run before, the latest first.
pub(crate) fn follow<'a>(found: &'a [Found], shorts: &'a Shorts) -> Vec<Follows<'a>> {
    let histories = histories(found, shorts);
    let of =
        |condition: &'a str, two: &[(&'a Found, _)]| Follows { before: &two[0].0.dir, now: &two[1].0.dir, condition };
    let pairs = histories.into_iter().flat_map(|((_, condition), history)| {
        history
            .windows(2)
            .map(|two| (two[1].0.manifest.as_ref().map_or(0, |m| m.began_unix_ns), of(condition, two)))
            .collect::<Vec<_>>()
    });
    let mut pairs: Vec<(i64, Follows<'a>)> = pairs.collect();
    pairs.sort_by_key(|(began, _)| std::cmp::Reverse(*began));
    pairs.into_iter().map(|(_, pair)| pair).collect()
}

/// A verdict, with its ratio on a line below.
fn verdict(words: &str) -> String {
    match words.split_once(" (") {
        Some((word, ratio)) => {
            format!("{}<span class=\"interval\">{}</span>", escape(word), escape(ratio.trim_end_matches(')')))
        }
        None => escape(words),
    }
}

/// Cells with the result of a record.
fn result(
    short: &Short,
    (low, high): (i64, i64),
    (histories, verdicts): (&Histories<'_>, &Verdicts),
    found: &Found,
) -> String {
    let cell = |ns: Option<i64>| ns.map_or("<td></td>".into(), |ns| format!("<td>{}</td>", time(ns)));
    let study = found.manifest.as_ref().map_or("", |m| &m.plan.study);
    let history = histories.get(&(study, &short.condition)).map_or(&[][..], Vec::as_slice);
    let at = history.iter().position(|(f, _)| f.name == found.name);
    let p99s: Vec<i64> = history.iter().map(|(_, p99)| p99.0).collect();
    // The first record of a study has no verdict; one that is not computed yet is there with the next request.
    let not_yet = || if at.is_some_and(|at| at > 0) { "not yet computed" } else { "" }.to_owned();
    let verdict = verdicts.get(&found.dir).map_or_else(not_yet, |words| verdict(words));
    format!(
        "{}{}<td class=\"l\">{}</td><td class=\"l\">{}</td><td class=\"l\">{}</td><td class=\"l\">{verdict}</td>",
        cell(short.p50_ns),
        cell(short.p99_ns.map(|p99| p99.0)),
        short.lost_words(),
        distribution(short, low, high),
        at.map_or(String::new(), |at| trend(&p99s, at)),
    )
}

/// Drivers and size of a record, e.g. "udp, cyclonedds: 2 conditions, 10 trials".
fn extent(found: &Found, manifest: &Manifest) -> String {
    let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let (conditions, trials) = (manifest.plan.conditions.len(), manifest.plan.trials.len());
    let drivers = escape(&found.drivers().join(", "));
    format!("{drivers}: {}, {}", count(conditions, "condition"), count(trials, "trial"))
}

fn row(found: &Found, result: &str, comparable: bool) -> String {
    let name = escape(&found.name);
    let address = format!("/records/{}", escape(&encode(&found.name)));
    let choose = if comparable && found.manifest.is_ok() {
        let radio = |end| {
            format!(
                "<td class=\"l\"><input type=\"radio\" name=\"{end}\" value=\"{name}\" aria-label=\"{end}: {name}\" required></td>"
            )
        };
        radio("a") + &radio("b")
    } else if comparable {
        "<td></td><td></td>".into()
    } else {
        String::new()
    };
    let status = match found.status() {
        "valid" => "valid".to_owned(),
        other => format!("<span class=\"bad\">{other}</span>"),
    };
    let cells = match &found.manifest {
        Err(why) => format!(
            "<td class=\"l\">{name}</td><td class=\"l\">{status}</td><td data-label=\"why\" class=\"l wrap\" colspan=\"9\">{}</td>",
            escape(&why.to_string())
        ),
        Ok(manifest) => {
            let forms = ["json", "csv", "md"].map(|form| format!("<a href=\"{address}/report.{form}\">{form}</a>"));
            format!(
                "<td class=\"l\"><a href=\"{address}/\">{name}</a><span class=\"interval\">{}</span></td>\
                 <td class=\"l\">{status}</td>{result}<td class=\"l wrap\">{}</td><td class=\"l\">{}</td><td class=\"l\">{}</td>",
                extent(found, manifest),
                escape(&manifest.plan.question),
                date(manifest.began_unix_ns),
                forms.join(" ")
            )
        }
    };
    format!("<tr>{choose}{cells}</tr>\n")
}
