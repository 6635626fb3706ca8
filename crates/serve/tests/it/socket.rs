//! Tests of the server over real sockets: which requests it answers, and which requests it refuses.

use crate::support::{Given, GivenTrial, slot};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use tailbound_model::*;
use tailbound_record::*;
use tailbound_serve::{Compare, Options, Server};

fn record(dir: &Path, driver: &'static str, change: impl Fn(&mut Manifest)) {
    let rows: Vec<_> = (0..500).map(|seq| slot(seq, 1_000_000, 900, [8_000, 4_000, 9_000 + seq as i64])).collect();
    let (slots, echoes) = rows.into_iter().unzip();
    let trial = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None };
    let given = Given { driver, payload: 64, rate: Rate::Period(Nanos(1_000_000)), trials: vec![trial] };
    std::fs::create_dir_all(dir.parent().unwrap()).unwrap();
    crate::support::write(dir, &[given], change);
}

/// Makes a folder with two good records and a damaged record. One good record is one folder deeper and has a name that
/// must be escaped. A further record lies outside the folder.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join("served").join(name);
    record(&at("first"), "udp", |m| m.began_unix_ns = 1_000_000_000_000_000_000);
    record(&at("deep/sec <b>&ond"), "cyclonedds", |m| {
        m.began_unix_ns = 1_100_000_000_000_000_000;
        m.plan.question = "Is <script>alert(1)</script> text?".into();
    });
    std::fs::create_dir_all(at("broken")).unwrap();
    std::fs::write(at("broken/manifest.json"), "{").unwrap();
    record(&folder.path().join("secret"), "udp", |m| m.plan.question = "kept elsewhere".into());
    std::os::unix::fs::symlink(folder.path().join("secret"), at("linked")).unwrap();
    folder
}

fn serve(folder: &Path, compare: Option<Compare>) -> SocketAddr {
    let options = Options { folder: folder.join("served"), names: vec!["bench.lan".into()], compare };
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let at = server.address().unwrap();
    std::thread::spawn(|| server.run());
    at
}

/// Sends these bytes to the server, and returns the head and the body of its response.
fn exchange(at: SocketAddr, request: &str) -> (String, String) {
    let (head, body) = exchange_bytes(at, request);
    (head, String::from_utf8(body).unwrap())
}

fn exchange_bytes(at: SocketAddr, request: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end =
        answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or_else(|| panic!("{request:?}: {answer:?}"));
    let body = answer.split_off(end + 4);
    answer.truncate(end);
    (String::from_utf8(answer).unwrap(), body)
}

fn get(at: SocketAddr, target: &str) -> (String, String) {
    exchange(at, &format!("GET {target} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"))
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn records_are_listed_filtered_and_reported() {
    let folder = folder();
    let at = serve(folder.path(), None);
    let (head, page) = get(at, "/");
    assert_eq!(status(&head), 200, "{head}");
    for header in ["text/html", "nosniff", "no-store", "DENY"] {
        assert!(head.contains(header), "{header}: {head}");
    }
    let place = |name: &str| page.find(name).unwrap_or_else(|| panic!("{name} is listed: {page}"));
    assert!(place("sec &lt;b&gt;&amp;ond") < place(">first<"), "the latest first");
    assert!(page.contains("unreadable") && page.contains("3 records"));
    assert!(
        !page.contains("<script>") && !page.contains("kept elsewhere"),
        "text stays text, and a link is not followed"
    );

    for (query, shown) in
        [("cyclonedds", "1 of 3"), ("payload%3D64", "2 of 3"), ("VALID+udp", "1 of 3"), ("", "3 records")]
    {
        assert!(get(at, &format!("/?q={query}")).1.contains(shown), "{query}");
    }
    assert!(get(at, "/?q=%22%3E%3Cb%3E").1.contains("value=\"&quot;&gt;&lt;b&gt;\""));

    let opened = Record::open(&folder.path().join("served/first")).unwrap();
    let report = tailbound_report::analyse(&opened).unwrap();
    for (form, text) in [
        ("report.json", tailbound_report::render_json(&report)),
        ("report.csv", tailbound_report::render_csv(&report)),
        ("report.md", tailbound_report::render_markdown(&report)),
    ] {
        let (head, body) = get(at, &format!("/records/first/{form}"));
        assert_eq!(status(&head), 200, "{head}");
        assert!(body == text, "{form} is what `tailbound report` gives");
    }
    let (_, page) = get(at, "/records/first/");
    let files = "<p class=\"note files\">Save as: <a href=\"report.json\" download>JSON</a> \u{b7} \
        <a href=\"report.csv\" download>CSV</a> \u{b7} <a href=\"report.md\" download>Markdown</a> \u{b7} \
        <a href=\"trace.pftrace\" download>trace for ui.perfetto.dev</a></p>\n";
    // The server does not have the files of the measured times.
    let whole = tailbound_report::render_html(&report);
    let (before, rest) = whole.split_once("<details><summary>Measured times</summary>").unwrap();
    let after = rest.split_once("</details>\n").unwrap().1;
    assert!(page.replace(files, "") == format!("{before}{after}"), "the page has links to the other forms");
    let request = format!("GET /records/first/trace.pftrace HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    let (head, body) = exchange_bytes(at, &request);
    assert!(status(&head) == 200 && head.contains("attachment; filename=\"trace.pftrace\""), "{head}");
    let mut trace = Vec::new();
    tailbound_report::Perfetto::of(&opened, &report, &[]).unwrap().write(&mut trace).unwrap();
    assert!(body == trace && !trace.is_empty(), "the trace is what `tailbound report --format perfetto` gives");
    let (head, body) = get(at, "/records/deep/sec%20%3Cb%3E%26ond/");
    assert!(status(&head) == 200 && body.contains("&lt;script&gt;alert"), "{head}");
    let (head, body) = get(at, "/records/broken/");
    assert!(status(&head) == 500 && body.contains("manifest.json"), "{head} {body}");
}

/// Tests that the list shows the results of the records: figures, losses, the distribution, and p99 of both records of one
/// study.
#[test]
fn the_list_shows_results() {
    let folder = folder();
    let at = |name: &str| folder.path().join("served").join(name);
    record(&at("later"), "udp", |m| m.began_unix_ns = 1_200_000_000_000_000_000);
    let (_, page) = get(serve(folder.path(), None), "/");
    let row = |name: &str| {
        let begin = page.find(&format!(">{name}</a>")).unwrap_or_else(|| panic!("{page}"));
        page[begin..].split_once("</tr>").unwrap().0.replace('\u{202f}', " ")
    };
    let report = tailbound_report::analyse(&Record::open(&at("first")).unwrap()).unwrap();
    let figures = report.conditions[0].round_trip.as_ref().unwrap();
    let us = |name, q| {
        let us = figures.quantile(q).unwrap().value_ns().unwrap() as f64 / 1e3;
        format!("<td data-label=\"{name}\">{us:.1} us</td>")
    };
    let lost = "<td data-label=\"lost\" class=\"l\">none</td>".to_owned();
    for part in [us("p50", 0.5), us("p99", 0.99), lost, "aria-label=\"Distribution of".into()] {
        assert!(row("first").contains(&part), "{part}: {}", row("first"));
    }
    assert!(row("later").contains("p99 of 2 records of this study"), "{}", row("later"));
    // One trial a side: `compare` gives no verdict, and an interval that describes these runs only.
    let cell =
        "<td data-label=\"p99 and the run before\" class=\"l\">not enough data<span class=\"interval\">ratio 1, 95 %: ";
    assert!(row("later").contains(cell) && row("later").contains(", these runs only</span></td>"), "{}", row("later"));
    assert!(!row("first").contains("not enough data"), "{}", row("first"));
}

/// Tests that the page of a folder without records says so, and how to make a record.
#[test]
fn an_empty_folder_says_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("served")).unwrap();
    let (head, page) = get(serve(folder.path(), None), "/");
    assert_eq!(status(&head), 200, "{head}");
    assert!(page.contains("There is no record in") && page.contains("tailbound quick --out"), "{page}");
    assert!(!page.contains("<table"), "{page}");
}

#[test]
fn nothing_but_reading_is_done() {
    let folder = folder();
    let at = serve(folder.path(), None);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"] {
        let request = format!("{method} / HTTP/1.1\r\nHost: {at}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let (head, body) = exchange(at, &request);
        assert!(status(&head) == 405 && head.to_lowercase().contains("allow: get, head"), "{head}");
        assert!(body.contains(&format!("{method} is refused")), "{body}");
    }
    let (head, body) =
        exchange(at, &format!("HEAD /records/first/ HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"));
    assert!(status(&head) == 200 && body.is_empty() && head.contains("content-length"), "{head}");
}

/// A request with a host name of somebody else, which points to this server, gets neither the list nor a report.
#[test]
fn other_names_are_refused() {
    let folder = folder();
    let at = serve(folder.path(), None);
    let port = at.port();
    let ask = |hosts: &[String]| {
        let hosts: String = hosts.iter().map(|h| format!("Host: {h}\r\n")).collect();
        exchange(at, &format!("GET /records/first/ HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n"))
    };
    for host in ["127.0.0.1", "localhost", "[::1]", "BENCH.lan"] {
        assert_eq!(status(&ask(&[format!("{host}:{port}")]).0), 200, "{host}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example"] {
        let (head, body) = ask(&[format!("{host}:{port}")]);
        assert!(status(&head) == 403 && !body.contains("payload"), "{host}: {head}");
        assert!(body.contains("--host NAME"), "{body}");
    }
    assert_eq!(status(&ask(&[]).0), 400, "none");
    assert_eq!(status(&ask(&["localhost".into(), "evil.example".into()]).0), 400, "two");
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let folder = folder();
    let at = serve(folder.path(), None);
    for target in [
        "/records/../secret/",
        "/records/%2e%2e/secret/",
        "/records/..%2fsecret/",
        "/records/first/../../secret/",
        "/records/linked/",
        "/records//etc/",
        "/records/%2Fetc%2F",
        "/records/first/manifest.json",
        "/records/first/samples/",
        "/records/first%00/",
        "/../../etc/passwd",
        "/records/",
        "/compare?a=first&b=first",
    ] {
        let (head, body) = get(at, target);
        assert!(status(&head) == 404 && !body.contains("kept elsewhere"), "{target}: {head}");
    }
    for broken in ["/%", "/%f", "/%ff", "/?q=%zz"] {
        assert_eq!(status(&get(at, broken).0), 400, "{broken}");
    }
}

/// Bytes that are not an HTTP request end only the connection on which they arrive.
#[test]
fn broken_requests_do_not_disturb_other_clients() {
    let folder = folder();
    let at = serve(folder.path(), None);
    for bytes in [&b"\0\0\0\0\r\n\r\n"[..], b"GET / HTTP/9\r\n\r\n", b"GET", &[b'A'; 100_000]] {
        let mut stream = TcpStream::connect(at).unwrap();
        let _ = stream.write_all(bytes);
        drop(stream);
    }
    let idle: Vec<_> = (0..20).map(|_| TcpStream::connect(at).unwrap()).collect();
    assert_eq!(status(&get(at, "/").0), 200, "others are answered while {} connections say nothing", idle.len());
}

#[test]
fn two_records_can_be_chosen_where_they_can_be_compared() {
    fn names(a: &Path, b: &Path) -> Result<String, Problem> {
        if a == b {
            Err(Problem::new("same_record", "a record is the same as itself", ""))
        } else {
            Ok(format!("<p>{} {}</p>", a.ends_with("first"), b.ends_with("sec <b>&ond")))
        }
    }
    let folder = folder();
    let at = serve(folder.path(), Some(names));
    let (_, page) = get(at, "/");
    assert!(page.matches("type=\"radio\"").count() == 4 && page.contains("action=\"/compare\""), "not the broken one");
    let (head, body) = get(at, "/compare?a=first&b=deep/sec+%3Cb%3E%26ond");
    assert!(status(&head) == 200 && body == "<p>true true</p>", "{body}");
    let (head, body) = get(at, "/compare?a=first&b=first");
    assert!(status(&head) == 422 && body.contains("the same as itself"), "{body}");
    assert_eq!(status(&get(at, "/compare?a=first&b=..%2Fsecret").0), 404);
}

/// Tests that the list has the verdict of a comparison about p99 and the run before, and not one of its own.
#[test]
fn the_list_has_the_verdicts_of_comparisons() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join("served").join(name);
    std::fs::create_dir_all(at("")).unwrap();
    let five = |name: &str, began: i64, usual_ns: i64| {
        let trial = |nth: i64| {
            let row = |seq: u64| slot(seq, 1_000_000, 900, [8_000, 4_000, usual_ns + 100 * nth + seq as i64 % 50]);
            let (slots, echoes) = (0..500).map(row).unzip();
            GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None }
        };
        let trials = (0..5).map(trial).collect();
        let given = Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(1_000_000)), trials };
        crate::support::write(&at(name), &[given], |m| m.began_unix_ns = began * 1_000_000_000)
    };
    let (first, second) = (five("first", 1_000, 20_000), five("second", 2_000, 60_000));
    let options = tailbound_report::CompareOptions { metrics: vec![Metric::RoundTrip], margin: None };
    let compared = tailbound_report::compare_records(&first, &second, &options).unwrap();
    let p99 = compared.pairs[0].statistics.iter().find(|c| c.statistic == "p99").unwrap();
    let words = tailbound_report::verdict_with_ratio(p99);
    assert!(words.starts_with("slower (ratio 2.") && !words.contains("these runs only"), "{words}");
    let (_, page) = get(serve(folder.path(), None), "/");
    let (verdict, ratio) = words.trim_end_matches(')').split_once(" (").unwrap();
    let cell = format!(
        "<td data-label=\"p99 and the run before\" class=\"l\">{verdict}<span class=\"interval\">{ratio}</span></td>"
    );
    assert_eq!(page.matches(&cell).count(), 1, "{cell}: {page}");
}
