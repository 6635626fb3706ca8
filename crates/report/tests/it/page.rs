//! Tests of the order and the words of the HTML page: what a reader sees first, and what is collapsed or left out.

use crate::stalls::{HOG, Stall, everything, report, stalls};
use crate::support::{Given, GivenTrial, slot};
use tailbound_document::HostFact;
use tailbound_model::*;
use tailbound_report::*;

/// The page with plain spaces and without marks of code.
fn page(report: &Report) -> String {
    render_html(report).replace('\u{202f}', " ").replace("<code>", "`").replace("</code>", "`")
}

/// The part of a page from the element with this id to the end of its section.
fn section<'p>(page: &'p str, id: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("{id} is there"));
    rest.split_once("</section>").map_or(rest, |(section, _)| section)
}

fn hogged() -> Report {
    report(&stalls(), &everything(), 0)
}

/// Tests that the first tiles have the figure of the tail with its interval, and the planted cause.
#[test]
fn the_first_tiles_name_the_figure_and_the_planted_cause() {
    let report = hogged();
    let page = page(&report);
    let tiles = section(&page, "lead");
    let figures = report.conditions[0].round_trip.as_ref().unwrap();
    let Some(QuantileReport::Value { value_ns, .. }) = figures.quantile(0.99) else { panic!("{figures:?}") };
    let result = tiles.split_once("id=\"tile-cause\"").unwrap().0;
    assert!(result.contains("95 %: "), "{result}");
    assert!(figures.max_ns.unwrap() > *value_ns && result.contains("longest 5."), "{result}");
    let cause = tiles.split_once("id=\"tile-cause\"").unwrap().1;
    assert!(cause.contains("waiting for a CPU that `stress-ng` had (ping end)"), "{cause}");
    assert!(cause.contains("href=\"#legs\"") && page.contains("<section id=\"legs\""), "{cause}");
}

/// Tests that tiles, the table, causes, figures and reservations follow each other in this order, and that every link of the
/// navigation leads to a part of the page.
#[test]
fn causes_come_second_and_reservations_are_collapsed() {
    let page = page(&hogged());
    let order = ["lead", "conditions", "why", "legs", "worst", "latency", "time", "how-sure", "threads", "loop"];
    let places: Vec<usize> =
        order.iter().map(|id| page.find(&format!("<section id=\"{id}\"")).unwrap_or_else(|| panic!("{id}"))).collect();
    assert!(places.is_sorted(), "{order:?}: {places:?}");
    let doubts = section(&page, "how-sure");
    assert!(doubts.contains("<details><summary>") && doubts.contains("<li class=\"caution\">"), "{doubts}");
    let nav = page.split_once("<nav").unwrap().1.split_once("</nav>").unwrap().0;
    for link in nav.split("href=\"#").skip(1) {
        let id = link.split_once('"').unwrap().0;
        assert!(page.contains(&format!("id=\"{id}\"")), "{id} is there");
    }
}

/// Tests that a page has no section about something that does not exist: warnings, a refused estimate, a path check.
#[test]
fn empty_sections_are_not_printed() {
    let report = Report { path: Vec::new(), threads: Vec::new(), ..hogged() };
    let page = page(&report);
    assert!(report.warnings.is_empty());
    for absent in
        ["<section id=\"warnings\"", "<section id=\"path\"", "<section id=\"threads\"", "No warning was raised"]
    {
        assert!(!page.contains(absent), "{absent}");
    }
    assert!(!page.contains("<section id=\"tail-estimate\""), "no figure without an estimate");
}

/// Tests that incidents with the same cause are one sentence with the times of all of them, and that one picture is drawn.
#[test]
fn incidents_with_the_same_cause_are_one_sentence() {
    let page = page(&hogged());
    let legs = section(&page, "legs").split_once("data-of=\"all\"").unwrap().0;
    let sentence = legs.split_once("10 stalls alike (trial 0 at ").unwrap_or_else(|| panic!("{legs}")).1;
    let sentence = sentence.split_once("<div").unwrap().0;
    let (times, effect) = sentence.split_once(')').unwrap();
    assert_eq!(times.split(", ").count(), 10, "{sentence}");
    // The planted wait of 5 ms is shorter by the wait that ordinary messages have.
    let wait = "in the longest, `recv` of the ping end waited 4.97 ms for CPU 0 behind `stress-ng`";
    assert!(effect.contains("delayed 50 messages") && effect.contains(wait), "{sentence}");
    assert_eq!(legs.matches("<div class=\"waterfall\">").count(), 1);

    let one = self::page(&report(&[Stall { slot: 150, ns: 5_000_000, by: HOG }], &everything(), 0));
    assert!(section(&one, "legs").contains("One stall (trial 0 at "), "{}", section(&one, "legs"));
}

/// Tests that lost messages alone have a group of their own, with their number.
#[test]
fn lost_messages_are_one_group() {
    let page = page(&report(&[], &everything(), 3));
    assert!(section(&page, "legs").contains("lost 3 messages (or they were not sent)"), "{}", section(&page, "legs"));
}

/// Tests that the page carries the command of the run for a shell, and a summary as text with the figures of the table.
#[test]
fn the_page_carries_its_command_and_a_summary() {
    let mut report = hogged();
    report.run.command =
        ["/usr/bin/tailbound", "run", "a b.yaml", "--set", "payload=[64 B]"].map(str::to_owned).to_vec();
    let page = page(&report);
    let copy = section(&page, "copy");
    assert!(copy.contains("tailbound run &#39;a b.yaml&#39; --set &#39;payload=[64 B]&#39;"), "{copy}");
    let name = &report.conditions[0].name;
    assert!(
        copy.contains(&format!("- {name}: p50 ")) && copy.contains("Why: ") && copy.contains("stress-ng"),
        "{copy}"
    );
    assert!(copy.contains("href=\"samples/0/ping-0.parquet\""), "{copy}");
    let served = render_html_with_files(&report, &[("report.json", "JSON")]);
    assert!(!served.contains("samples/0/"), "a server does not have the files");
}

/// Tests that every drawing whose plot can be stretched names the edges of the plot, which lie within the drawing.
#[test]
fn drawings_name_the_edges_of_their_plot() {
    let page = render_html(&hogged());
    let mut fitted = 0;
    for drawing in page.split("<svg ").skip(1).map(|rest| rest.split_once('>').unwrap().0) {
        let Some((_, plot)) = drawing.split_once("data-plot=\"") else { continue };
        let (left, right) = plot.split_once('"').unwrap().0.split_once(' ').unwrap();
        let (left, right): (f64, f64) = (left.parse().unwrap(), right.parse().unwrap());
        assert!(0.0 < left && left < right && right <= 960.0, "{drawing}");
        fitted += 1;
    }
    assert!(fitted > 10, "{fitted}");
    let wide = page.matches("viewBox=\"0 0 960 ").count();
    assert_eq!(fitted, wide, "every wide drawing can be stretched");
}

/// Tests that the policy of ordinary threads is in words, and a real-time policy stays as the kernel names it.
#[test]
fn ordinary_threads_have_a_normal_priority() {
    let mut report = hogged();
    report.threads[0].after[0].policy = "other nice 19".into();
    report.threads[0].after[1].policy = "fifo 80".into();
    let page = page(&report);
    let threads = section(&page, "threads");
    assert!(threads.contains("normal priority, nice 19") && threads.contains("fifo 80"), "{threads}");
}

/// Tests that the latency limit of a study is a line in the tail and over time.
#[test]
fn the_latency_limit_is_a_line() {
    let rows: Vec<_> =
        (0..500).map(|seq| slot(seq, 1_000_000, 900, [8_000, 4_000, 9_000 + 300 * seq as i64])).collect();
    let (slots, echoes) = rows.into_iter().unzip();
    let trial = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None };
    let given = Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(1_000_000)), trials: vec![trial] };
    let folder = tempfile::tempdir().unwrap();
    let mut report = analyse(&crate::support::write(&folder.path().join("record"), &[given], |_| ())).unwrap();
    assert!(!render_html(&report).contains("class=\"limit\""), "no limit, no line");
    report.conditions[0].above = Some(AboveReport { limit_ns: 100_000, metrics: Default::default() });
    let page = page(&report);
    for id in ["tail", "time"] {
        assert!(section(&page, id).contains("class=\"limit\"") && section(&page, id).contains("limit 100 us"), "{id}");
    }
    report.conditions[0].above = Some(AboveReport { limit_ns: 1, metrics: Default::default() });
    assert!(!render_html(&report).contains("class=\"limit\""), "the limit is not on the axis");
}

/// Tests that each thread is in the drawing of the CPUs of its machine, with the CPUs that it may use, and that isolated CPUs
/// are marked.
#[test]
fn the_cpus_of_threads_are_drawn() {
    let mut report = hogged();
    let host = report.trials[0].ends.values().next().unwrap().host.clone();
    let facts = report.facts.iter_mut().find(|facts| facts.host == host).expect("facts of the host");
    for (key, value) in [("cpu.online", "0-3"), ("cpu.isolated", "2-3")] {
        facts.facts.retain(|fact| fact.key != key);
        facts.facts.push(HostFact { key: key.into(), value: value.into(), unknown: None, source: String::new() });
    }
    report.threads[0].after.iter_mut().for_each(|thread| thread.cpus = "2-3".into());
    let page = page(&report);
    let drawn = section(&page, "threads").split("</figure>").next().unwrap().to_owned();
    assert!(drawn.contains(&format!("machine {host}")) && drawn.contains("CPU 3</text>"), "{drawn}");
    assert_eq!(drawn.matches(">isolated</text>").count(), 2, "{drawn}");
    assert!(drawn.contains("data-cpus=\"2-3\""), "{drawn}");
    let svg = render_svg(&report, Figure::Layout).unwrap();
    assert!(svg.contains("machine") && !svg.contains("class=\"piece"), "a file has no style sheet: {svg}");
}

/// Tests that the threads that run a guest are in the drawing of its host, and not in the one of the guest.
#[test]
fn the_threads_that_run_a_guest_are_drawn_at_its_host() {
    let mut report = hogged();
    let host = report.trials[0].ends["ping"].host.clone();
    let mut of_guest = report.facts[0].clone();
    of_guest.host = "guest pong".into();
    report.facts.insert(0, of_guest);
    report.trials[0].ends.get_mut("pong").unwrap().host = "guest pong".into();
    let vcpu = GuestThread { name: "vCPU 0".into(), vcpu: Some(0), tid: 7, cpus: "1".into() };
    let guest = GuestSeen { guest: "pong".into(), threads: vec![vcpu], ..GuestSeen::default() };
    report.trials[0].guests.push(guest);
    let svg = render_svg(&report, Figure::Layout).unwrap();
    let at = |words: &str| svg.find(words).unwrap_or_else(|| panic!("{words}: {svg}"));
    let (own, threads) = (at(&format!("machine {host}")), at("guest pong: vCPU 0"));
    assert!(own < threads && svg[own..threads].matches("machine ").count() == 1, "{svg}");
}
