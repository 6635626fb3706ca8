//! Tests of every output format of a report.

#[allow(dead_code)]
use crate::support::{Given, GivenTrial, lose, slot};
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

/// Makes a record with two payloads and two trials each, one of which is invalid. The larger payload loses messages; a
/// third payload is not possible.
fn report() -> Report {
    let trial = |payload: i64, status, slots: u64| {
        let (mut rows, mut echoes) = (Vec::new(), Vec::new());
        for seq in 0..slots {
            let late = if seq % 300 == 299 { 2_000_000 } else { 0 };
            let wave = (seq as i64 * 7_919) % 1_000;
            let (mut row, echo) = slot(seq, 1_000_000, 900, [8_000 + payload + wave, 4_000, 9_000 + payload + late]);
            if payload > 1_000 && seq % 250 == 3 {
                lose(&mut row);
            } else {
                echoes.push(echo);
            }
            row.warm_up = seq < 100;
            rows.push(row);
        }
        GivenTrial { status, slots: rows, echoes, finding: None }
    };
    let rate = Rate::Period(Nanos(1_000_000));
    let given = |payload, trials| Given { driver: "udp", payload, rate, trials };
    let conditions = [
        given(64, vec![trial(64, TrialStatus::Valid, 2_100), trial(64, TrialStatus::Valid, 2_100)]),
        given(8_192, vec![trial(8_192, TrialStatus::Valid, 1_100), trial(8_192, TrialStatus::Invalid, 1_100)]),
        given(1 << 20, Vec::new()),
    ];
    let change = |manifest: &mut Manifest| {
        manifest.plan.conditions[2].not_possible = Some("udp carries at most 65,507 B".into());
        let text = "the agent of pong was lost (signal 9)";
        let lost = Warning::new("agent_lost", Severity::Invalid, text, "See the log of trial 3.");
        manifest.warnings.push(lost.at_trial(3).at_end("pong"));
        let text = "the clock source is hpet, not tsc: <each> reading costs about 1 us";
        manifest.warnings.push(Warning::new("clock_source", Severity::Warning, text, "Boot with `tsc=reliable`."));
        manifest.plan.question = "What does a <larger> payload & \"path\" cost?".into();
    };
    let folder = tempfile::tempdir().unwrap();
    analyse(&crate::support::write(&folder.path().join("record"), &conditions, change)).unwrap()
}

#[test]
fn terminal() {
    let text = render_terminal(&report(), 80, false);
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    insta::assert_snapshot!("terminal", text);
}

/// Test: the short form has the answer, the table, the causes and the most serious warnings in few lines.
#[test]
fn short() {
    let text = render_short(&report(), 80, false);
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    assert!(text.lines().count() <= 22, "{text}");
    insta::assert_snapshot!("short", text);
}

#[test]
fn colour_says_nothing_that_words_do_not() {
    let report = report();
    let mut plain = String::new();
    let coloured = render_terminal(&report, 80, true);
    assert!(coloured.contains("\x1b["));
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&plain), trimmed(&render_terminal(&report, 80, false)));
}

#[test]
fn markdown() {
    insta::assert_snapshot!("markdown", render_markdown(&report()));
}

#[test]
fn csv() {
    let csv = render_csv(&report());
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|l| l.split(',').count() == columns), "no cell here holds a comma");
    let round_trips: String =
        csv.lines().filter(|l| l.starts_with("cond") || l.contains("round_trip")).map(|l| format!("{l}\n")).collect();
    insta::assert_snapshot!("csv", round_trips);
}

#[test]
fn the_page_has_texts_tables_and_data() {
    let report = report();
    let page = render_html(&report);
    for finding in &report.findings {
        assert!(page.contains(&format!("href=\"#{}\"", finding.evidence)), "{}", finding.evidence);
        assert!(page.contains(&format!("id=\"{}\"", finding.evidence)), "{} is there", finding.evidence);
    }
    let p50 = report.conditions[0].round_trip.as_ref().unwrap().quantile(0.5).unwrap().value_ns().unwrap();
    assert!(page.contains(&format!("data-value-ns=\"{p50}\"")), "the table tells {p50}");
    assert!(page.contains("udp carries at most 65,507 B"));
    assert!(page.contains("What does a &lt;larger&gt; payload &amp; &quot;path&quot; cost?"));
    assert!(page.contains("&lt;each&gt;") && !page.contains("<each>") && !page.contains("<larger>"));
    assert!(page.contains("6.18.0 &lt;b&gt;&amp;") && !page.contains("6.18.0 <b>"));

    let begin = "<script type=\"application/json\" id=\"report\">";
    let data = page.split_once(begin).unwrap().1.split_once("</script>").unwrap().0;
    assert!(serde_json::from_str::<Report>(data).unwrap() == report, "the page carries the document");
}

#[test]
fn page_fetches_nothing() {
    let page = render_html(&report());
    for outside in ["http://", "https://", "@import", "url(", " src="] {
        // Only the name of the SVG namespace and references to parts of the page itself are allowed.
        let allowed = match outside {
            "http://" => page.matches("http://www.w3.org/2000/svg").count(),
            "url(" => page.matches("url(#").count(),
            _ => 0,
        };
        assert!(page.matches(outside).count() <= allowed, "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_record_without_a_single_answer_still_reads() {
    let trial = GivenTrial {
        status: TrialStatus::Valid,
        slots: (0..10)
            .map(|seq| {
                let mut row = slot(seq, 1_000_000, 0, [1, 1, 1]).0;
                lose(&mut row);
                row
            })
            .collect(),
        echoes: Vec::new(),
        finding: Some("nothing was seen".into()),
    };
    let given = Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(1_000_000)), trials: vec![trial] };
    let folder = tempfile::tempdir().unwrap();
    let report = analyse(&crate::support::write(&folder.path().join("record"), &[given], |_| ())).unwrap();
    let words = render_terminal(&report, 80, false).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("none of 10 messages was answered (nothing was seen)"), "{words}");
    assert!(render_html(&report).contains("nothing was seen"));
    assert!(!render_markdown(&report).is_empty() && !render_csv(&report).is_empty());
    let problem = render_svg(&report, Figure::Latency).unwrap_err();
    let expected = "this chart cannot be drawn: no message was answered\n  help: these charts can be drawn: layout";
    assert_eq!(problem.paragraph(), expected);
}

/// Tests that control characters in a study, a warning or a finding have no effect on a terminal.
#[test]
fn texts_of_files_cannot_command_the_terminal() {
    const EVIL: &str = "a\x1b]0;owned\x07\x1b[2Jb\u{9b}31mc\r\nd\x08";
    let mut trial = GivenTrial { status: TrialStatus::Valid, slots: Vec::new(), echoes: Vec::new(), finding: None };
    trial.slots = (0..10).map(|seq| slot(seq, 1_000_000, 0, [1, 1, 1]).0).collect();
    trial.slots.iter_mut().for_each(lose);
    trial.finding = Some(EVIL.into());
    let given =
        |payload| Given { driver: "udp", payload, rate: Rate::Period(Nanos(1_000_000)), trials: vec![trial.clone()] };
    let change = |m: &mut Manifest| {
        (m.plan.study, m.plan.question, m.run_id) = (EVIL.into(), EVIL.into(), EVIL.into());
        m.plan.report.title = Some(EVIL.into());
        m.functional_only = Some(EVIL.into());
        m.plan.factors.push(EVIL.into());
        for (i, condition) in m.plan.conditions.iter_mut().enumerate() {
            condition.levels.insert(EVIL.into(), format!("{EVIL}{i}"));
        }
        m.plan.conditions[1].not_possible = Some(EVIL.into());
        m.warnings.push(Warning::new(EVIL, Severity::Warning, EVIL, EVIL).at_end(EVIL));
    };
    let folder = tempfile::tempdir().unwrap();
    let report =
        analyse(&crate::support::write(&folder.path().join("record"), &[given(64), given(128)], change)).unwrap();
    for text in [render_terminal(&report, 80, false), render_markdown(&report)] {
        let obeyed = |c: &char| c.is_control() && *c != '\n';
        assert_eq!(text.chars().find(obeyed), None, "{text:?}");
        assert!(text.contains("owned"), "the words stay: {text}");
    }
    let coloured = render_terminal(&report, 80, true);
    let is_ours = |rest: &str| ["1m", "2m", "33m", "0m"].iter().any(|code| rest.starts_with(code));
    assert!(coloured.split("\x1b").skip(1).all(|r| r.strip_prefix('[').is_some_and(is_ours)), "{coloured:?}");
}

#[test]
fn facts_that_differ_between_hosts_are_marked() {
    let mut report = report();
    assert!(!render_html(&report).contains("id=\"differences\""), "one host differs from nobody");
    let mut other = report.facts[0].clone();
    other.host = "bench-2".into();
    report.facts.push(other);
    assert!(render_html(&report).contains("The hosts agree in every fact."));
    let changed = report.facts[1].facts.iter_mut().find(|f| f.key == "sched.rt_runtime_us").unwrap();
    changed.value = 990_000.into();
    report.facts[1].facts.retain(|f| f.key != "sched.autogroup");
    let page = render_html(&report);
    let table = page.split_once("id=\"differences\"").unwrap().1.split_once("</table>").unwrap().0;
    assert!(table.contains("sched.rt_runtime_us") && table.contains("950000") && table.contains("990000"), "{table}");
    assert!(table.contains("sched.autogroup") && table.contains("not there"), "{table}");
    assert!(!table.contains("kernel.release"), "{table}");
    // The first fact is marked for both hosts, and the second fact, which one host does not have, is marked once.
    assert_eq!(page.matches("<span class=\"bad\">differs</span>").count(), 3);
}

/// Returns the drawing of a figure that the page shows first or, with `choices`, the template for these choices.
fn chart<'p>(page: &'p str, id: &str, choices: &str) -> &'p str {
    let section = page.split_once(&format!("<section id=\"{id}\">")).unwrap().1.split_once("</section>").unwrap().0;
    let begin = section.find(&format!("{choices}>")).unwrap_or_else(|| panic!("{id} has {choices}"));
    let rest = &section[begin..];
    rest.split_once("<template").map_or(rest, |(chart, _)| chart)
}

/// Returns the values of an attribute in a page, in the order of the page.
fn values(svg: &str, name: &str) -> Vec<i64> {
    let name = format!(" data-{name}=\"");
    let all = svg.split(name.as_str()).skip(1).map(|rest| rest.split_once('"').unwrap().0);
    all.map(|value| value.parse().unwrap()).collect()
}

/// Tests that the charts show exactly the values of the report document, each value once.
#[test]
fn charts_show_the_numbers_of_the_document() {
    let report = report();
    let page = render_html(&report);
    for (metric, key) in [(Metric::RoundTrip, "round_trip"), (Metric::Back, "back")] {
        let figures = || report.conditions.iter().filter_map(|c| c.metric(metric)).filter(|m| m.n > 0);
        let quantiles = |some: &[f64]| -> Vec<i64> {
            let of = |m: &MetricReport| some.iter().filter_map(|q| m.quantile(*q)?.value_ns()).collect::<Vec<_>>();
            figures().flat_map(of).collect()
        };
        let all: Vec<f64> = report.view.quantiles.clone();
        let maxima: Vec<i64> = figures().filter_map(|m| m.max_ns).collect();
        for (id, expected) in [
            ("latency", [quantiles(&[0.5, 0.99]), maxima.clone()].concat()),
            ("ladder", [quantiles(&all), maxima.clone()].concat()),
            ("tail", [quantiles(&all), maxima].concat()),
        ] {
            let x = if id == "latency" { " data-x=\"payload\"" } else { "" };
            let mut drawn = values(chart(&page, id, &format!("data-metric=\"{key}\"{x}")), "value-ns");
            let mut expected = expected;
            drawn.sort_unstable();
            expected.sort_unstable();
            assert_eq!(drawn, expected, "{id} of {key}");
        }
        let counted: u64 = figures().map(|m| m.scheduled).sum();
        let drawn: i64 = values(chart(&page, "histogram", &format!("data-metric=\"{key}\"")), "count").iter().sum();
        assert_eq!(drawn, counted as i64, "every message, lost ones too");
    }
}

/// Tests that the charts of a single condition show the values that the report document has for this condition.
#[test]
fn charts_of_one_condition_show_its_numbers() {
    let report = report();
    let page = render_html(&report);
    for condition in report.conditions.iter().filter(|c| !c.worst.is_empty()) {
        let of = format!("data-of=\"{}\"", condition.id);
        let parts = values(chart(&page, "legs", &of), "value-ns");
        let worst = &condition.worst[0];
        for part in [worst.out_ns, worst.turnaround_ns, worst.back_ns].into_iter().flatten().filter(|ns| *ns > 0) {
            assert!(parts.contains(&part), "{part} of the worst message of {} is drawn", condition.name);
        }
        let longest = condition.wake_to_sent.as_ref().and_then(|m| m.max_ns).unwrap();
        assert!(values(chart(&page, "loop", &of), "value-ns").contains(&longest), "the longest call: {longest}");
    }
}

/// Tests that an SVG file names its subject, fetches nothing, and contains nothing for a script or a style sheet.
#[test]
fn single_figures_need_nothing_else() {
    let report = report();
    for (figure, name) in Figure::ALL {
        match (figure, render_svg(&report, figure)) {
            (Figure::Flow, told) => {
                let remedy = told.unwrap_err().remedy;
                assert!(remedy.starts_with("these charts can be drawn: latency, tail, ladder"), "{name}: {remedy}")
            }
            (Figure::Overhead, told) => {
                assert!(told.unwrap_err().what.contains("the study names no baseline level"), "{name}")
            }
            (Figure::GateWaits | Figure::GateTimeline, drawn) => {
                assert!(drawn.unwrap_err().what.contains("no messages of known gates"), "{name}")
            }
            (Figure::NetworkUser, drawn) => assert!(drawn.unwrap_err().what.contains("no receive stamps"), "{name}"),
            (Figure::TailEstimate, told) => assert!(told.unwrap_err().what.contains("not applicable"), "{name}"),
            (_, told) => {
                let svg = told.unwrap();
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
                assert!(svg.contains("What does a &lt;larger&gt; payload &amp; &quot;path&quot; cost?"), "{name}");
                assert!(svg.contains("invalid trials: see the report") && svg.contains(&report.run.id), "{name}");
                for page in ["class=", "data-", "var(", "<script", "href", "tabindex"] {
                    assert!(!svg.contains(page), "{name} holds {page}");
                }
            }
        }
    }
    assert!(render_svg(&report, Figure::Tail).unwrap().contains("lost: 1 in"), "losses are in the picture");
    let emulated = Report { functional_only: Some("emulated".into()), ..report };
    assert!(render_svg(&emulated, Figure::Ladder).unwrap().contains("functional only"));
}

/// Vertical positions of an SVG path that consists of relative steps: `m`, `h`, `v` and `z`.
fn heights(path: &str) -> Vec<f64> {
    let (mut y, mut begin, mut all) = (0.0, 0.0, Vec::new());
    for step in path.split_inclusive(|c: char| "mhvz".contains(c)).zip(path.split(|c: char| "mhvz".contains(c)).skip(1))
    {
        let (command, numbers) = (step.0.chars().last().unwrap(), step.1);
        match command {
            'm' => {
                let second = numbers.rfind([' ', '-']).unwrap();
                y += numbers[second..].trim().parse::<f64>().unwrap();
                begin = y;
            }
            'v' => y += numbers.parse::<f64>().unwrap(),
            'z' => y = begin,
            _ => {}
        }
        all.push(y);
    }
    all
}

/// Tests that the highest bar of the chart over time reaches the maximum of the trial.
#[test]
fn a_trial_over_time_loses_no_maximum() {
    let report = report();
    let page = render_html(&report);
    let shown: usize = {
        let picture = page.split_once("<section id=\"time\">").unwrap().1.split_once(" data-trial=\"").unwrap().1;
        picture.split_once('"').unwrap().0.parse().unwrap()
    };
    let over = report.trial(shown).unwrap().over_time.as_ref().unwrap();
    let [low, high] = [over.round_trip.min_ns.iter().flatten().min(), over.round_trip.max_ns.iter().flatten().max()]
        .map(|v| *v.unwrap() as f64);
    let svg = render_svg(&report, Figure::Time).unwrap();
    let bars = svg.split_once("opacity=\"0.4\"").unwrap().1;
    let path = bars.split_once(" d=\"").unwrap().1.split_once('"').unwrap().0;
    let heights = heights(path);
    let ends = [heights.iter().copied().fold(0.0, f64::max), heights.iter().copied().fold(f64::INFINITY, f64::min)];
    // The axis is logarithmic, from the next of 1, 2 and 5 below to the next above, over 274 units.
    let nice = |v: f64, up: bool| {
        let power = 10f64.powf(v.log10().floor());
        let mut steps = [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter();
        if up { steps.find(|s| *s >= v).unwrap() } else { steps.rfind(|s| *s <= v).unwrap() }
    };
    let (from, to) = (nice(low, false), nice(high, true));
    for (end, value) in ends.into_iter().zip([low, high]) {
        let at = 300.0 - 274.0 * (value / from).ln() / (to / from).ln();
        assert!((end - at).abs() < 0.2, "{value} lies at {at}, not at {end}");
    }
}

/// Tests that the line that a run prints after a trial agrees with the report of the trial.
#[test]
fn the_short_report_agrees_with_the_whole_report() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("record");
    let trial = |slots: u64| {
        let (mut rows, mut echoes) = (Vec::new(), Vec::new());
        for seq in 0..slots {
            let (mut row, echo) = slot(seq, 1_000_000, 900, [8_000, 4_000, 9_000 + (seq as i64 * 7_919) % 1_000]);
            row.warm_up = seq < 10;
            if seq == 50 {
                lose(&mut row);
            }
            rows.push(row);
            echoes.push(echo);
        }
        GivenTrial { status: TrialStatus::Valid, slots: rows, echoes, finding: None }
    };
    let given =
        |slots| Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(1_000_000)), trials: vec![trial(slots)] };
    let report = analyse(&crate::support::write(&dir, &[given(510), given(110), given(10)], |_| ())).unwrap();
    let known = report.conditions[0].round_trip.as_ref().unwrap();
    let us = |ns: i64| format!("{:.1}\u{202f}us", ns as f64 / 1e3);
    let [p50, p99] = [0.5, 0.99].map(|q| us(known.quantile(q).unwrap().value_ns().unwrap()));
    let max = us(known.max_ns.unwrap());
    let told = |trial| trial_line(&dir, trial).unwrap();
    assert_eq!(told(0), Some(format!("p50 {p50}, p99 {p99}, max {max}, 499 of 500 answered")));
    assert!(told(1).unwrap().contains("p99 needs 368"), "{:?}", told(1));
    assert_eq!(told(2), None, "warm-up alone");
}
