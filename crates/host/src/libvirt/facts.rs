//! Facts about a libvirt domain, from libvirt's description and from the kernel.

use super::domain::Domain;
use super::error::DomainError;
use super::threads::DomainThreads;
use crate::scheduling;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tailbound_model::{DomainPin, Fact, FactValue, RoleScheduling};

impl Domain {
    /// Facts about the libvirt domain, with keys `domain.*`; facts about threads are present only while the libvirt
    /// domain runs.
    ///
    /// # Errors
    /// libvirt does not answer.
    pub fn facts(&self) -> Result<Vec<Fact>, DomainError> {
        let state = self.state()?;
        let text = self.virsh.ask(&["dumpxml", &self.uuid])?;
        let mut list = List { facts: Vec::new(), source: format!("virsh dumpxml {}", self.name) };
        described(&text, &mut list).map_err(|e| self.unread("its description", &e))?;
        list.source = format!("virsh domstate {}", self.name);
        list.text("state", &state.0);
        if state.runs() {
            self.thread_facts(&self.threads()?, &mut list)?;
        }
        list.facts.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(list.facts)
    }

    fn thread_facts(&self, threads: &DomainThreads, list: &mut List) -> Result<(), DomainError> {
        let mut pins = vec![("emulator.pin".to_owned(), DomainPin::Emulator)];
        pins.extend((0..threads.vcpus.len() as u32).map(|n| (format!("vcpu.{n}.pin"), DomainPin::Vcpu(n))));
        let iothreads = self.virsh.iothreads(&self.uuid)?;
        pins.extend(iothreads.into_iter().map(|n| (format!("iothread.{n}.pin"), DomainPin::Iothread(n))));
        for (key, pin) in pins {
            list.source = format!("virsh pins of {}", self.name);
            match self.virsh.pinned(&self.uuid, pin)? {
                Some(cpus) => list.text(&key, &cpus.to_string()),
                None => list.add(&key, FactValue::Unknown("virsh does not list this pin".into())),
            }
        }
        let vcpus = threads.vcpus.iter().enumerate().map(|(n, tid)| (format!("vcpu.{n}.thread"), *tid));
        for (key, tid) in vcpus.chain([("emulator.thread".to_owned(), threads.process.pid)]) {
            list.source = format!("sched_getattr, sched_getaffinity of thread {tid}");
            match scheduling::read_back(tid) {
                Ok((policy, cpus)) => {
                    list.text(&key, &RoleScheduling { policy: Some(policy), cpus: Some(cpus) }.to_string());
                }
                Err(e) => list.add(&key, FactValue::Unknown(e.to_string())),
            }
        }
        Ok(())
    }
}

impl Domain {
    /// Sockets of the libvirt domain's virtio-serial channels whose names begin with `prefix`, sorted by name. The list
    /// is empty while the libvirt domain does not run.
    ///
    /// # Errors
    /// libvirt does not answer.
    pub fn channels(&self, prefix: &str) -> Result<Vec<PathBuf>, DomainError> {
        let text = self.virsh.ask(&["dumpxml", &self.uuid])?;
        channels(&text, prefix).map_err(|e| self.unread("its description", &e))
    }
}

fn channels(text: &str, prefix: &str) -> Result<Vec<PathBuf>, String> {
    let document = Document::parse(text).map_err(|e| e.to_string())?;
    let devices = at(document.root_element(), "devices").ok_or("it has no devices")?;
    let all = devices.children().filter(|c| c.has_tag_name("channel") && c.attribute("type") == Some("unix"));
    let named = all.filter_map(|channel| {
        let name = at(channel, "target")?.attribute("name").filter(|name| name.starts_with(prefix))?;
        Some((name, PathBuf::from(at(channel, "source")?.attribute("path")?)))
    });
    // Sorted by name and not by path, because libvirt puts the number of the domain into the path.
    let named: BTreeMap<&str, PathBuf> = named.collect();
    Ok(named.into_values().collect())
}

struct List {
    facts: Vec<Fact>,
    source: String,
}

impl List {
    fn add(&mut self, key: &str, value: FactValue) {
        self.facts.push(Fact { key: format!("domain.{key}"), value, source: self.source.clone() });
    }

    fn text(&mut self, key: &str, value: &str) {
        self.add(key, FactValue::Text(value.to_owned()));
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.add(key, FactValue::Flag(value));
    }
}

/// Returns the first XML element below `node` that is reached by these element names, separated by `/`, for example
/// `cpu/model`.
fn at<'a, 'i>(node: Node<'a, 'i>, path: &str) -> Option<Node<'a, 'i>> {
    path.split('/').try_fold(node, |node, name| node.children().find(|c| c.has_tag_name(name)))
}

fn described(text: &str, list: &mut List) -> Result<(), String> {
    let document = Document::parse(text).map_err(|e| e.to_string())?;
    let root = document.root_element();
    let words = |path: &str| at(root, path).and_then(|n| n.text()).map(|t| t.trim().to_owned()).unwrap_or_default();
    let value = |path: &str, name: &str| at(root, path).and_then(|n| n.attribute(name)).unwrap_or_default().to_owned();
    list.text("name", &words("name"));
    list.text("uuid", &words("uuid"));
    let kind = root.attribute("type").unwrap_or_default();
    list.text("type", kind);
    // The type `qemu` means emulation; all other types have a hypervisor.
    list.flag("emulated", kind == "qemu");
    list.text("machine", &value("os/type", "machine"));
    let cpu =
        [value("cpu", "mode"), words("cpu/model")].into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ");
    list.text("cpu_model", if cpu.is_empty() { "the default of QEMU" } else { &cpu });
    list.flag("pmu", value("features/pmu", "state") != "off");
    let most: i64 = words("vcpu").parse().map_err(|_| format!("vcpu is `{}`", words("vcpu")))?;
    list.add("vcpus", FactValue::Number(value("vcpu", "current").parse().unwrap_or(most)));
    list.add("iothreads", FactValue::Number(words("iothreads").parse().unwrap_or(0)));
    let (memory, unit) = (words("memory"), value("memory", "unit"));
    list.text("memory", &format!("{memory} {unit}"));
    list.flag("memory_locked", at(root, "memoryBacking/locked").is_some());
    list.flag("memory_shared", at(root, "memoryBacking/nosharepages").is_none());
    let pages = at(root, "memoryBacking/hugepages").map(|pages| {
        let sizes = pages.children().filter(|c| c.has_tag_name("page"));
        let sizes = sizes.filter_map(|p| Some(format!("{} {}", p.attribute("size")?, p.attribute("unit")?)));
        let sizes = sizes.collect::<Vec<_>>().join(", ");
        if sizes.is_empty() { "default size".to_owned() } else { sizes }
    });
    list.text("huge_pages", pages.as_deref().unwrap_or("none"));
    list.text("balloon", at(root, "devices/memballoon").and_then(|b| b.attribute("model")).unwrap_or("none"));
    let devices = at(root, "devices").ok_or("it has no devices")?;
    for (number, card) in devices.children().filter(|c| c.has_tag_name("interface")).enumerate() {
        interface(card, number, list);
    }
    Ok(())
}

fn interface(card: Node<'_, '_>, number: usize, list: &mut List) {
    let kind = card.attribute("type").unwrap_or_default();
    let source = at(card, "source").and_then(|s| {
        let name = ["bridge", "network", "dev"].into_iter().find_map(|n| s.attribute(n))?;
        Some(format!("{kind} {name}"))
    });
    list.text(&format!("interface.{number}.kind"), source.as_deref().unwrap_or(kind));
    for (key, path, name) in [
        ("mac", "mac", "address"),
        ("model", "model", "type"),
        ("device", "target", "dev"),
        ("driver", "driver", "name"),
        ("queues", "driver", "queues"),
    ] {
        if let Some(value) = at(card, path).and_then(|n| n.attribute(name)) {
            list.text(&format!("interface.{number}.{key}"), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut list = List { facts: Vec::new(), source: String::new() };
        described(text, &mut list).unwrap();
        let line = |f: &Fact| match &f.value {
            FactValue::Text(text) => format!("{} {text}\n", f.key),
            FactValue::Number(n) => format!("{} {n}\n", f.key),
            FactValue::Flag(flag) => format!("{} {flag}\n", f.key),
            FactValue::Unknown(why) => format!("{} ? {why}\n", f.key),
        };
        list.facts.iter().map(line).collect()
    }

    #[test]
    fn channels_are_found_by_name_and_need_a_socket() {
        let text = "<domain><devices>\
            <channel type='unix'><source mode='bind' path='/run/b'/><target type='virtio' name='org.tailbound.agent.1'/></channel>\
            <channel type='unix'><source mode='bind' path='/run/c'/><target type='virtio' name='org.tailbound.agent.0'/></channel>\
            <channel type='unix'><target type='virtio' name='org.tailbound.agent.2'/></channel>\
            <channel type='unix'><source mode='bind' path='/run/a'/><target type='virtio' name='org.qemu.guest_agent.0'/></channel>\
            <channel type='pty'><source path='/dev/pts/1'/><target type='virtio' name='org.tailbound.agent.3'/></channel>\
            </devices></domain>";
        assert_eq!(channels(text, "org.tailbound.agent").unwrap(), ["/run/c", "/run/b"].map(PathBuf::from));
        assert_eq!(channels("<domain><devices/></domain>", "org.tailbound.agent"), Ok(Vec::new()));
    }

    #[test]
    fn a_description_becomes_facts() {
        let text = "<domain type='kvm' id='1'><name>rt1</name><uuid>15f3</uuid><memory unit='KiB'>1048576</memory>\
            <memoryBacking><hugepages><page size='2048' unit='KiB'/></hugepages><nosharepages/><locked/></memoryBacking>\
            <vcpu placement='static' current='2'>4</vcpu><iothreads>1</iothreads>\
            <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os><features><pmu state='off'/></features>\
            <cpu mode='host-passthrough'/><devices><interface type='bridge'><mac address='52:54:00:00:00:01'/>\
            <source bridge='br0'/><target dev='vnet0'/><model type='virtio'/><driver name='vhost' queues='2'/></interface>\
            <memballoon model='none'/></devices></domain>";
        assert_eq!(
            shown(text),
            "domain.name rt1\ndomain.uuid 15f3\ndomain.type kvm\ndomain.emulated false\ndomain.machine pc-q35-7.2\n\
             domain.cpu_model host-passthrough\ndomain.pmu false\ndomain.vcpus 2\ndomain.iothreads 1\n\
             domain.memory 1048576 KiB\ndomain.memory_locked true\ndomain.memory_shared false\n\
             domain.huge_pages 2048 KiB\ndomain.balloon none\ndomain.interface.0.kind bridge br0\n\
             domain.interface.0.mac 52:54:00:00:00:01\ndomain.interface.0.model virtio\n\
             domain.interface.0.device vnet0\ndomain.interface.0.driver vhost\ndomain.interface.0.queues 2\n"
        );
    }
}
