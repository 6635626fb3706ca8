//! Modules of a kernel: which files a name needs, and in which order they are loaded.

use crate::error::GuestError;
use crate::kernel::Kernel;
use crate::pvh::unpack;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Without these a guest cannot be spoken with.
pub const KEPT: [&str; 3] = ["virtio_pci", "virtio_net", "virtio_console"];
/// What networks within a guest are made of, where its kernel has it.
pub const NETWORK: [&str; 17] = [
    "veth",
    "bridge",
    "macvlan",
    "macvtap",
    "vxlan",
    "tun",
    "dummy",
    "ifb",
    "8021q",
    "sch_netem",
    "sch_taprio",
    "sch_etf",
    "sch_mqprio",
    "sch_fq",
    "sch_prio",
    "sch_ingress",
    "cls_flower",
];
/// Taken along where the kernel has them.
const WELCOME: [&str; 1] = ["virtio_rng"];

/// How the file of a module ends, in an initramfs, that a guest can do without.
pub(crate) const MAYBE: &str = ".maybe.ko";

/// A module of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Module {
    pub file: PathBuf,
    /// It has to be loaded; else where the kernel takes it.
    pub required: bool,
}

/// Finds `wanted`, what every guest needs and what it can use, of `maybe` what is there, and all that these need, in load
/// order.
///
/// # Errors
/// A module that is wanted is not of this kernel.
pub(crate) fn choose(kernel: &Kernel, wanted: &[String], maybe: &[&str]) -> Result<Vec<Module>, GuestError> {
    let Some(directory) = &kernel.modules else {
        return match wanted {
            // What a guest needs may be part of the image.
            [] => Ok(Vec::new()),
            [first, ..] => Err(GuestError::new(
                format!("the module {first} was asked for, and no modules of the kernel {} are known", kernel.version),
                "name the directory of its modules, the one with modules.dep",
            )),
        };
    };
    let listed = Listed::read(directory)?;
    let mut files = Vec::new();
    let needed = KEPT.iter().map(|m| (*m, "every guest needs"));
    for (name, who) in needed.chain(wanted.iter().map(|m| (m.as_str(), "was asked for"))) {
        if !listed.add(name, true, &mut files) {
            let text = match who {
                "was asked for" => {
                    format!("the module {name} was asked for, and the kernel {} has none of that name", kernel.version)
                }
                _ => format!("the kernel {} has no module {name}, which every guest needs", kernel.version),
            };
            let mend =
                if who == "was asked for" { "leave it out, or take another kernel" } else { "take another kernel" };
            return Err(GuestError::new(text, mend));
        }
    }
    for name in WELCOME.iter().chain(maybe) {
        listed.add(name, false, &mut files);
    }
    Ok(files.into_iter().map(|module| Module { file: directory.join(module.file), ..module }).collect())
}

/// modules.dep, modules.builtin, modules.softdep and modules.alias (modules.dep(5), modprobe.d(5)).
struct Listed {
    /// Name -> its file, and the files that it needs, the last of which is loaded first.
    needs: BTreeMap<String, (String, Vec<String>)>,
    builtin: BTreeSet<String>,
    /// Name -> what it looks for when it is loaded, though none of its symbols: names, or aliases of several.
    before: BTreeMap<String, Vec<String>>,
    aliases: Vec<(String, String)>,
}

impl Listed {
    fn read(directory: &Path) -> Result<Listed, GuestError> {
        let path = directory.join("modules.dep");
        let text = std::fs::read_to_string(&path).map_err(GuestError::file("read", &path))?;
        let needs = text.lines().filter_map(|line| {
            let (file, needs) = line.split_once(':')?;
            Some((name(file), (file.to_owned(), needs.split_whitespace().map(str::to_owned).collect())))
        });
        // A kernel that has none of them has no such file.
        let builtin = std::fs::read_to_string(directory.join("modules.builtin")).unwrap_or_default();
        let text = |file: &str| std::fs::read_to_string(directory.join(file)).unwrap_or_default();
        let (soft, aliases) = (text("modules.softdep"), text("modules.alias"));
        let before = soft.lines().filter_map(|line| {
            let (module, rest) = line.strip_prefix("softdep ")?.split_once(" pre: ")?;
            Some((name(module), rest.split_whitespace().take_while(|w| !w.ends_with(':')).map(name).collect()))
        });
        let aliases = aliases.lines().filter_map(|line| {
            let (alias, module) = line.strip_prefix("alias ")?.rsplit_once(' ')?;
            Some((name(alias), name(module)))
        });
        Ok(Listed {
            needs: needs.collect(),
            builtin: builtin.lines().map(name).collect(),
            before: before.fold(
                BTreeMap::new(),
                |mut all: BTreeMap<String, Vec<String>>, (module, wanted): (_, Vec<_>)| {
                    // A module has as many lines as it likes.
                    all.entry(module).or_default().extend(wanted);
                    all
                },
            ),
            aliases: aliases.collect(),
        })
    }

    /// Adds the files of a module that are not there yet; `false` when there is no such module.
    fn add(&self, module: &str, required: bool, files: &mut Vec<Module>) -> bool {
        let Some((file, needs)) = self.needs.get(&name(module)) else { return self.builtin.contains(&name(module)) };
        for file in needs.iter().rev().chain([file]) {
            if let Some(there) = files.iter_mut().find(|there| there.file == Path::new(file)) {
                there.required |= required;
                continue;
            }
            // One of several may do, and a processor need not have what another is for.
            for wanted in self.before.get(&name(file)).into_iter().flatten().filter(|wanted| **wanted != name(module)) {
                let named = self.aliases.iter().filter(|(alias, _)| alias == wanted).map(|(_, module)| module);
                for soft in [wanted].into_iter().chain(named) {
                    self.add(soft, false, files);
                }
            }
            files.push(Module { file: PathBuf::from(file), required });
        }
        true
    }
}

/// Where the initramfs has a module: in load order, and whether a guest can do without it.
pub(crate) fn place(number: usize, name: &str, required: bool) -> String {
    format!("modules/{number:03}-{name}{}", if required { ".ko" } else { MAYBE })
}

/// The name of a module by its file: `-` and `_` are the same, what it is compressed with does not matter.
pub(crate) fn name(file: &str) -> String {
    let file = file.rsplit('/').next().unwrap_or(file);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

/// A module as the kernel takes it.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, GuestError> {
    let octets = std::fs::read(file).map_err(GuestError::file("read", file))?;
    match file.extension().and_then(|e| e.to_str()) {
        Some("xz") => unpack(&octets, "xz", "xz-utils"),
        Some("zst") => unpack(&octets, "zstd", "zstd"),
        Some("gz") => unpack(&octets, "gzip", "gzip"),
        _ => Ok(octets),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(dir: &Path) -> Kernel {
        let dep = "kernel/virtio/virtio.ko:\n\
                   kernel/virtio/virtio_ring.ko: kernel/virtio/virtio.ko\n\
                   kernel/virtio/virtio_pci.ko.xz: kernel/virtio/virtio_ring.ko kernel/virtio/virtio.ko\n\
                   kernel/drivers/virtio_net.ko: kernel/virtio/virtio_ring.ko kernel/virtio/virtio.ko\n\
                   kernel/net/sch-odd.ko:\n\
                   kernel/net/veth.ko:\n";
        std::fs::write(dir.join("modules.dep"), dep).unwrap();
        std::fs::write(dir.join("modules.builtin"), "kernel/drivers/char/virtio_console.ko\n").unwrap();
        Kernel { version: "6.1.0-x".into(), image: "vmlinuz".into(), modules: Some(dir.to_owned()) }
    }

    #[test]
    fn what_a_module_needs_is_loaded_before_it_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let chosen = choose(&kernel(dir.path()), &["sch_odd".into()], &["veth"]).unwrap();
        let names = |chosen: &[Module]| chosen.iter().map(|m| name(m.file.to_str().unwrap())).collect::<Vec<_>>();
        assert_eq!(names(&chosen), ["virtio", "virtio_ring", "virtio_pci", "virtio_net", "sch_odd", "veth"]);
        assert_eq!(chosen.iter().filter(|m| m.required).count(), 5);
        assert!(chosen[2].file.ends_with("kernel/virtio/virtio_pci.ko.xz"));
        // What a module looks for by an alias comes before it, and may be missing.
        std::fs::write(dir.path().join("modules.softdep"), "softdep sch_odd pre: sums post: x\n").unwrap();
        std::fs::write(dir.path().join("modules.alias"), "alias sums veth\nalias sums none\n").unwrap();
        let chosen = choose(&kernel(dir.path()), &["sch_odd".into()], &[]).unwrap();
        assert_eq!(names(&chosen)[4..], ["veth", "sch_odd"]);
        assert_eq!(chosen.iter().map(|m| m.required).collect::<Vec<_>>(), [true, true, true, true, false, true]);
    }

    #[test]
    fn a_module_that_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let known = kernel(dir.path());
        let told = |kernel: &Kernel| choose(kernel, &["netdevsim".into()], &[]).unwrap_err().to_string();
        let none = Kernel { modules: None, ..known.clone() };
        let mut texts = vec![told(&known), told(&none)];
        std::fs::write(dir.path().join("modules.builtin"), "").unwrap();
        texts.push(told(&known));
        insta::assert_snapshot!(texts.join("\n"));
    }
}
