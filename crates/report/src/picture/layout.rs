//! Draws which CPUs the threads of a trial may use: one block for each machine, one column for each CPU, one row for the threads of
//! the ends with the same role and CPUs, for each thread that runs a guest, and for each interrupt of a network card.
//!
//! Everything was read while the trial ran: a bar covers the CPUs that are permitted, a dot is where a thread ran last, or the CPU
//! to which the kernel sends an interrupt.

use crate::picture::canvas::{Canvas, Hold, Mark, Medium, WIDTH};
use crate::picture::reading::cut;
use std::collections::BTreeSet;
use tailbound_document::number::count;
use tailbound_document::{Host, HostFact, Report, Thread, TrialReport};
use tailbound_model::CpuList;

/// What the drawing shows.
pub(crate) const TITLE: &str =
    "CPUs that threads and interrupts may use (bars), and where threads ran last or interrupts go to (dots)";

const LEFT: f64 = 16.0;
const RIGHT: f64 = WIDTH - 16.0;
/// Heights: of the head of a block with its name and the numbers of its CPUs, of the words about isolated CPUs below it, and of a row,
/// whose words are above its bar, so that a narrow page has room for both.
const HEAD: f64 = 46.0;
const MARKS: f64 = 14.0;
const ROW: f64 = 34.0;
/// Largest width of the column of a CPU.
const WIDEST: f64 = 160.0;
/// Maximum number of columns: others are left out unless a row is confined to some CPUs.
const MOST_COLUMNS: usize = 48;

/// A row: something that runs on CPUs.
#[derive(Debug, PartialEq)]
struct Row {
    words: String,
    cpus: BTreeSet<u32>,
    last: BTreeSet<u32>,
    kind: Kind,
}

/// Kind of a row; each has a colour.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    End,
    Guest,
    Interrupt,
}

/// A machine (a host or a guest) of a trial.
struct Machine<'a> {
    name: String,
    facts: Option<&'a Host>,
    rows: Vec<Row>,
}

/// Draws the layout of a trial; `None` if the report does not have the threads of the trial.
pub(crate) fn draw(report: &Report, trial: usize, medium: Medium) -> Option<Canvas> {
    let machines = machines(report, report.trial(trial)?);
    if machines.is_empty() {
        return None;
    }
    let label = format!("CPUs of the threads of trial {trial}");
    let mut canvas = Canvas::new(medium, 0.0, label).plot(LEFT, RIGHT);
    for machine in &machines {
        machine.draw(&mut canvas);
    }
    Some(canvas)
}

/// The machines of a trial, those of the ends first.
fn machines<'a>(report: &'a Report, trial: &TrialReport) -> Vec<Machine<'a>> {
    let mut machines: Vec<Machine<'a>> = Vec::new();
    let mut add = |name: &str, row: Row| match machines.iter_mut().find(|machine| machine.name == name) {
        Some(machine) => machine.rows.push(row),
        None => {
            let facts = report.facts.iter().find(|facts| facts.host == name);
            machines.push(Machine { name: name.to_owned(), facts, rows: vec![row] });
        }
    };
    let host_of = |end: &str| trial.ends.get(end).map(|end| end.host.as_str());
    for process in report.threads.iter().filter(|process| process.trial == trial.id) {
        let Some(host) = process.ends.first().and_then(|end| host_of(end)) else { continue };
        let rows = rows_of_threads(&process.ends.join(" and "), &process.after);
        rows.into_iter().for_each(|row| add(host, row));
    }
    // The machines of guests have names such as `guest pong`; the host of guests is the machine that is no guest.
    let is_guest = |host: &str| trial.guests.iter().any(|guest| host.split(' ').next_back() == Some(&guest.guest));
    let host = report.facts.iter().map(|facts| facts.host.as_str()).find(|host| !is_guest(host));
    for guest in &trial.guests {
        for thread in &guest.threads {
            let words = format!("guest {}: {}", guest.guest, thread.name);
            let Some(cpus) = parsed(&thread.cpus) else { continue };
            add(host.unwrap_or("host"), Row { words, cpus, last: BTreeSet::new(), kind: Kind::Guest });
        }
    }
    let sides = report.path.iter().filter(|path| path.trials.contains(&trial.id)).flat_map(|path| &path.ends);
    for side in sides {
        let Some(host) = host_of(&side.end) else { continue };
        side.card.iter().filter_map(|fact| interrupt(&side.interface, fact)).for_each(|row| add(host, row));
    }
    machines
}

/// Rows of the threads of a process: threads with the same role, policy and CPUs are one row.
fn rows_of_threads(ends: &str, threads: &[Thread]) -> Vec<Row> {
    let mut groups: Vec<(&Thread, u64, BTreeSet<u32>)> = Vec::new();
    for thread in threads {
        let is_alike =
            |other: &Thread| (&other.role, &other.policy, &other.cpus) == (&thread.role, &thread.policy, &thread.cpus);
        match groups.iter_mut().find(|(first, ..)| is_alike(first)) {
            Some((_, number, last)) => {
                *number += 1;
                last.insert(thread.last_cpu);
            }
            None => groups.push((thread, 1, BTreeSet::from([thread.last_cpu]))),
        }
    }
    let row = |(thread, number, last): (&Thread, u64, BTreeSet<u32>)| {
        let many = if number > 1 { format!(", {} threads", count(number)) } else { String::new() };
        let words = format!("{ends}: {} ({}{many})", thread.role, thread.policy);
        Some(Row { words, cpus: parsed(&thread.cpus)?, last, kind: Kind::End })
    };
    groups.into_iter().filter_map(row).collect()
}

/// The row of an interrupt of a network card, from a fact such as `virtio1-input.0: may use CPUs 0-1, goes to 0`.
fn interrupt(interface: &str, fact: &HostFact) -> Option<Row> {
    let number = fact.key.strip_prefix("interrupt.")?;
    let (name, rest) = fact.value.as_str()?.split_once(": may use CPUs ")?;
    let (may, goes) = rest.rsplit_once(", goes to ")?;
    let words = format!("{interface}: interrupt {number} {name}");
    Some(Row { words, cpus: parsed(may)?, last: parsed(goes).unwrap_or_default(), kind: Kind::Interrupt })
}

fn parsed(cpus: &str) -> Option<BTreeSet<u32>> {
    cpus.parse::<CpuList>().ok().map(|list| list.0).filter(|cpus| !cpus.is_empty())
}

impl Machine<'_> {
    /// A list of CPUs among the facts of the machine.
    fn fact(&self, key: &str) -> BTreeSet<u32> {
        let found = self.facts.and_then(|host| host.facts.iter().find(|fact| fact.key == key));
        found.and_then(|fact| parsed(fact.value.as_str()?)).unwrap_or_default()
    }

    /// The CPUs that have a column, and the number of those that have none.
    fn columns(&self) -> (Vec<u32>, usize) {
        let all: BTreeSet<u32> =
            self.rows.iter().flat_map(|row| &row.cpus).copied().chain(self.fact("cpu.online")).collect();
        if all.len() <= MOST_COLUMNS {
            return (all.into_iter().collect(), 0);
        }
        let confined = self.rows.iter().filter(|row| row.cpus.len() < all.len()).flat_map(|row| &row.cpus);
        let used: BTreeSet<u32> = confined.chain(self.rows.iter().flat_map(|row| &row.last)).copied().collect();
        let shown: Vec<u32> = used.into_iter().take(MOST_COLUMNS).collect();
        let left_out = all.len() - shown.len();
        (shown, left_out)
    }

    fn draw(&self, canvas: &mut Canvas) {
        let (cpus, left_out) = self.columns();
        let top = canvas.height();
        let width = ((RIGHT - LEFT) / cpus.len().max(1) as f64).min(WIDEST);
        let (isolated, tickless) = (self.fact("cpu.isolated"), self.fact("cpu.nohz_full"));
        let has_marks = cpus.iter().any(|cpu| isolated.contains(cpu) || tickless.contains(cpu));
        let head = HEAD + if has_marks { MARKS } else { 0.0 };
        let bottom = top + head + ROW * self.rows.len() as f64;
        canvas.grow(bottom + 12.0 - top);
        canvas.text("strong", (LEFT, top + 16.0), &format!("machine {}", cut(&self.name, 40)), Hold::Start);
        let middle = |nth: usize| LEFT + width * (nth as f64 + 0.5);
        for (nth, cpu) in cpus.iter().enumerate() {
            let words = if width >= 46.0 { format!("CPU {cpu}") } else { cpu.to_string() };
            canvas.text("tick", (middle(nth), top + 36.0), &words, Hold::Middle);
            let marks = [(isolated.contains(cpu), "isolated"), (tickless.contains(cpu), "no tick")];
            let found: Vec<&str> = marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect();
            if !found.is_empty() {
                canvas.rect("warm-up", (middle(nth) - width / 2.0, top + 42.0), (width, bottom - top - 42.0));
                let words =
                    if width >= 58.0 { found.join(", ") } else { found.iter().map(|word| &word[..1]).collect() };
                canvas.text("tick", (middle(nth), top + 54.0), &words, Hold::Middle);
            }
        }
        if left_out > 0 {
            canvas.text("tick", (RIGHT, top + 16.0), &format!("{left_out} other CPUs are not shown"), Hold::End);
        }
        canvas.upright("grid", (0..=cpus.len()).map(|nth| LEFT + width * nth as f64), (top + 42.0, bottom));
        for (nth, row) in self.rows.iter().enumerate() {
            row.draw(canvas, top + head + ROW * nth as f64, &cpus, width);
        }
    }
}

impl Row {
    fn draw(&self, canvas: &mut Canvas, top: f64, columns: &[u32], width: f64) {
        canvas.text("row halo", (LEFT + 4.0, top + 13.0), &cut(&self.words, 52), Hold::Start);
        canvas.open("", self.kind as usize, &[]);
        let list = CpuList(self.cpus.clone()).to_string();
        let last: Vec<String> = self.last.iter().map(u32::to_string).collect();
        let mut lines = vec![self.words.clone(), format!("may use CPUs {list}")];
        if !last.is_empty() {
            let what = if self.kind == Kind::Interrupt { "goes to" } else { "ran last on" };
            lines.push(format!("{what} CPU {}", last.join(", ")));
        }
        let mark = Mark { lines, ..Mark::default() }.with("cpus", list).with("row", &self.words);
        canvas.mark(&mark, |canvas| {
            for (from, to) in runs(&self.cpus, columns) {
                let size = (width * (to - from) as f64 - 6.0, 12.0);
                canvas.rect("piece", (LEFT + width * from as f64 + 3.0, top + 19.0), size);
            }
            for nth in (0..columns.len()).filter(|nth| self.last.contains(&columns[*nth])) {
                canvas.dot("", (LEFT + width * (nth as f64 + 0.5), top + 25.0), 4.0);
            }
        });
        canvas.close();
    }
}

/// Neighbouring columns that belong to `cpus`: the first column, and the one behind the last.
fn runs(cpus: &BTreeSet<u32>, columns: &[u32]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (nth, _) in columns.iter().enumerate().filter(|(_, cpu)| cpus.contains(cpu)) {
        match runs.last_mut().filter(|(_, to)| *to == nth) {
            Some((_, to)) => *to += 1,
            None => runs.push((nth, nth + 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cpus: &[u32]) -> BTreeSet<u32> {
        cpus.iter().copied().collect()
    }

    #[test]
    fn threads_with_the_same_cpus_are_one_row_with_all_last_cpus() {
        let thread = |role: &str, cpus: &str, last_cpu| Thread {
            role: role.into(),
            policy: "fifo 80".into(),
            cpus: cpus.into(),
            last_cpu,
            ..Thread::default()
        };
        let threads = [thread("receive", "2-3", 2), thread("main", "1", 1), thread("receive", "2-3", 3)];
        let rows = rows_of_threads("pong", &threads);
        let row = |words: &str, cpus: &[u32], last: &[u32]| Row {
            words: words.into(),
            cpus: set(cpus),
            last: set(last),
            kind: Kind::End,
        };
        let receive = row("pong: receive (fifo 80, 2 threads)", &[2, 3], &[2, 3]);
        assert_eq!(rows, [receive, row("pong: main (fifo 80)", &[1], &[1])]);
    }

    #[test]
    fn interrupts_come_from_the_facts_of_the_card() {
        let fact = |text: &str| HostFact {
            key: "interrupt.25".into(),
            value: text.into(),
            unknown: None,
            source: String::new(),
        };
        let row = interrupt("eth0", &fact("virtio1-input.0: may use CPUs 0-1, goes to 1")).unwrap();
        assert_eq!(
            (row.words.as_str(), row.cpus, row.last),
            ("eth0: interrupt 25 virtio1-input.0", set(&[0, 1]), set(&[1]))
        );
        assert_eq!(interrupt("eth0", &fact("a: may use CPUs 1, goes to not known")).unwrap().last, set(&[]));
        assert_eq!(interrupt("eth0", &fact("a: may use CPUs not known, goes to 1")), None);
    }

    #[test]
    fn bars_end_where_a_cpu_is_not_permitted() {
        assert_eq!(runs(&set(&[0, 1, 5]), &[0, 1, 4, 5]), [(0, 2), (3, 4)]);
        assert_eq!(runs(&set(&[9]), &[0, 1]), []);
    }
}
