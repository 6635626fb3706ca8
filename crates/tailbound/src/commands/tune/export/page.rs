//! The text of an export: a comment that says where it comes from and what it cannot express, then the lines.

use tailbound_model::{DEFAULT_QUEUE, KnobSpec};

use super::super::changes::{Changes, Effect, EndName};

/// What a form says about the kept changes.
#[derive(Debug, Default)]
pub struct Page {
    /// Lines of the form.
    pub lines: Vec<String>,
    /// Sentences about the lines.
    pub notes: Vec<String>,
    /// Kept settings, or parts of them, that the form cannot express, each with the reason.
    pub left_out: Vec<(String, String)>,
}

impl Page {
    /// Adds a kept setting that the form cannot express. The reason is said once for each setting.
    pub fn leave_out(&mut self, setting: &str, reason: impl Into<String>) {
        let entry = (setting.to_owned(), reason.into());
        if !self.left_out.contains(&entry) {
            self.left_out.push(entry);
        }
    }

    /// Adds a sentence about the lines, once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The sentences of the comment at the top, without a mark of a comment.
    pub fn comment(&self, head: &[String]) -> Vec<String> {
        let notes = self.notes.iter().map(|note| format!("- {note}"));
        let mut all: Vec<String> = head.iter().cloned().chain(notes).collect();
        if !self.left_out.is_empty() {
            all.push("Kept, but not in this output:".to_owned());
            all.extend(self.left_out.iter().map(|(setting, reason)| format!("- {setting}: {reason}")));
        }
        all
    }
}

/// The effects that concern the program at one end, and the settings that concern the other end.
pub fn of_end<'a>(changes: &'a Changes, end: EndName, page: &mut Page) -> Vec<(&'a str, &'a Effect)> {
    let (own, other): (Vec<_>, Vec<_>) =
        changes.effects().partition(|(_, effect)| effect.end().is_none_or(|of| of == end));
    for (setting, effect) in other {
        let other = effect.end().map_or("", EndName::word);
        page.leave_out(setting, format!("it is for the program at the {other} end (--end {other})"));
    }
    own
}

/// Says how a queue discipline is set, which none of these forms does.
pub fn by_tc(interface: &str, kind: &str) -> String {
    let command = match kind {
        DEFAULT_QUEUE => format!("tc qdisc del dev {interface} root"),
        kind => format!("tc qdisc replace dev {interface} root {kind}"),
    };
    format!("it is a queue discipline, to be set at each boot by `{command}`")
}

/// Where an effect belongs, as the reason for which another form leaves it out.
pub fn home(effect: &Effect) -> String {
    match effect {
        Effect::Host(KnobSpec::Sysctl { .. }) => "it is a kernel parameter of the host (form sysctl)".to_owned(),
        Effect::Host(KnobSpec::CpuQuota) => "it is the quota of the program's control group (form systemd)".to_owned(),
        Effect::Host(KnobSpec::Queue { interface, kind }) => by_tc(interface, kind),
        Effect::Host(_) => "it is a setting of the host (form tuned)".to_owned(),
        Effect::Threads { role: None, .. } | Effect::AnyCpu { .. } => {
            "it is the scheduling of the program (form systemd)".to_owned()
        }
        Effect::Threads { role: Some(role), .. } if role == "main" => {
            "it is the scheduling of the program's own threads that send and receive, which only the program can set"
                .to_owned()
        }
        Effect::Threads { role: Some(role), .. } => format!(
            "it is the scheduling of the threads of role {role}, which the program or the configuration of its middleware sets \
             (form cyclonedds, fastdds or connext)"
        ),
        Effect::Option { driver, .. } => match driver.as_str() {
            "cyclonedds" | "fastdds" => format!("it is an option of the middleware (form {driver})"),
            "udp" => "it is an option of the sockets of the program, which only the program can set".to_owned(),
            _ => format!("it is an option of the driver {driver}"),
        },
        Effect::Guest { .. } => "it concerns the threads of a guest on its host (form libvirt)".to_owned(),
        Effect::LockedMemory | Effect::LeastTimerSlack => "it is a limit of the program (form systemd)".to_owned(),
        Effect::None => "the study has this value without it, too".to_owned(),
        Effect::Other => {
            "it changes how the program or its network works, which no setting of this form does".to_owned()
        }
    }
}
