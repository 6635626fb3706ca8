//! Makes the HTML page with the list of records.

use crate::records::Found;
use crate::target::encode;
use tailbound_report::{date, escape_html as escape, render_frame};

/// Makes the page with the list of the records that match `query`. If `comparable` is true, a reader can choose two
/// records for a comparison.
pub(crate) fn page(folder: &str, found: &[Found], query: &str, comparable: bool) -> String {
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
    let choose = if comparable { "<th class=\"l\">A</th><th class=\"l\">B</th>" } else { "" };
    let rows: String = shown.iter().map(|f| row(f, comparable)).collect();
    let table = format!(
        "<div class=\"scroll\"><table><thead><tr>{choose}<th class=\"l\">record</th><th class=\"l\">status</th>\
         <th class=\"l\">question</th><th class=\"l\">drivers</th><th>conditions</th><th>trials</th><th class=\"l\">began\
         </th><th class=\"l\">as</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    );
    let table = if comparable {
        format!("<form method=\"get\" action=\"/compare\">{table}<p><button>Compare A with B</button></p></form>\n")
    } else {
        table
    };
    render_frame("Records", &format!("{filter}<p class=\"lead\">{number}, the latest first.</p>\n{table}"))
}

fn row(found: &Found, comparable: bool) -> String {
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
            "<td class=\"l\">{name}</td><td class=\"l\">{status}</td><td class=\"l wrap\" colspan=\"6\">{}</td>",
            escape(&why.to_string())
        ),
        Ok(manifest) => {
            let forms = ["json", "csv", "md"].map(|form| format!("<a href=\"{address}/report.{form}\">{form}</a>"));
            format!(
                "<td class=\"l\"><a href=\"{address}/\">{name}</a></td><td class=\"l\">{status}</td>\
                 <td class=\"l wrap\">{}</td><td class=\"l\">{}</td><td>{}</td><td>{}</td><td class=\"l\">{}</td>\
                 <td class=\"l\">{}</td>",
                escape(&manifest.plan.question),
                escape(&found.drivers().join(", ")),
                manifest.plan.conditions.len(),
                manifest.plan.trials.len(),
                date(manifest.began_unix_ns),
                forms.join(" ")
            )
        }
    };
    format!("<tr>{choose}{cells}</tr>\n")
}
