//! Modules of a guest's kernel: the files that a module needs, and the order in which they are loaded.

use crate::error::{file_error, guest_error};
use crate::kernel::Kernel;
use crate::module_file::{ModuleFile, is_file, name};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tailbound_model::Problem;

/// Names of the kernel modules without which a guest cannot be reached.
pub const REQUIRED: [&str; 3] = ["virtio_pci", "virtio_net", "virtio_console"];
/// Names of kernel modules for networks inside a guest; they are added if the kernel has them.
pub const NETWORK: [&str; 20] = [
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
    "sch_cbs",
    "sch_fq",
    "sch_prio",
    "sch_ingress",
    "cls_flower",
    "cls_matchall",
    "act_gate",
];
/// Names of useful kernel modules that are added if the kernel has them.
const OPTIONAL: [&str; 1] = ["virtio_rng"];

/// End of the file name, in the initramfs, of a kernel module that the guest can do without.
pub(crate) const MAYBE: &str = ".maybe.ko";

/// A kernel module that is copied into the initramfs of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Module {
    pub file: PathBuf,
    /// Whether a user named this file, whose content can therefore be another one the next time.
    pub is_own: bool,
    /// Whether the guest fails if this kernel module cannot be loaded.
    pub required: bool,
}

/// Chooses the kernel modules of a guest in load order: the modules in `wanted`, the modules that every guest needs,
/// the modules of `maybe` that exist, and all modules on which these depend. A word in `wanted` is the name of a module
/// of the kernel, or the path of a file. A file takes the place of the module of the kernel that has the same name.
///
/// # Errors
/// The kernel does not have a module that is wanted or that every guest needs, or a file cannot be used with it.
pub(crate) fn choose(kernel: &Kernel, wanted: &[String], maybe: &[&str]) -> Result<Vec<Module>, Problem> {
    let listed = kernel.modules.as_deref().map(Listed::read).transpose()?;
    let mut files = Vec::new();
    let (own, named): (Vec<_>, Vec<_>) = wanted.iter().map(String::as_str).partition(|word| is_file(word));
    for word in own {
        add_file(word, (kernel, listed.as_ref()), &mut Vec::new(), &mut files)?;
    }
    let (Some(directory), Some(listed)) = (&kernel.modules, listed) else {
        return match named.first() {
            // The required modules may be built into the kernel image.
            None => Ok(files),
            Some(first) => Err(guest_error(
                format!(
                    "the study asks for the module {first}, but no modules of the kernel {} are known",
                    kernel.version
                ),
                "give the path of the directory with the kernel's modules, which contains modules.dep",
            )),
        };
    };
    let needed = REQUIRED.iter().map(|m| (*m, "every guest needs"));
    for (name, who) in needed.chain(named.into_iter().map(|m| (m, "was asked for"))) {
        if !listed.add(name, true, &mut files) {
            let text = match who {
                "was asked for" => {
                    format!("the study asks for the module {name}, but the kernel {} does not have it", kernel.version)
                }
                _ => format!("the kernel {} has no module {name}, which every guest needs", kernel.version),
            };
            let remedy = if who == "was asked for" {
                "remove the module from `modules`, or use another kernel"
            } else {
                "use another kernel"
            };
            return Err(guest_error(text, remedy));
        }
    }
    for name in OPTIONAL.iter().chain(maybe) {
        listed.add(name, false, &mut files);
    }
    Ok(files.into_iter().map(|module| Module { file: directory.join(module.file), ..module }).collect())
}

/// Adds to the list the file of a module that a user named, after the modules that it needs: modules of the kernel, or
/// files in the same directory. `needed_by`: the files that need this file, each needed by the one before it.
///
/// # Errors
/// A file is no module for this kernel, a module that it needs is missing, or it needs itself.
fn add_file(
    word: &str,
    (kernel, listed): (&Kernel, Option<&Listed>),
    needed_by: &mut Vec<PathBuf>,
    files: &mut Vec<Module>,
) -> Result<(), Problem> {
    let file = ModuleFile::read(word, kernel)?;
    if files.iter().any(|there| there.file == file.path) {
        return Ok(());
    }
    if let Some(first) = needed_by.iter().position(|above| *above == file.path) {
        let circle = needed_by[first..].iter().chain([&file.path]).map(|path| name(&path.to_string_lossy()));
        let what = format!("the module file {word} needs itself: {}", circle.collect::<Vec<_>>().join(" needs "));
        return Err(guest_error(what, "build these modules again, so that none of them uses symbols of a later one"));
    }
    needed_by.push(file.path.clone());
    for needed in &file.needs {
        let is_there = files.iter().any(|there| name(&there.file.to_string_lossy()) == *needed);
        if is_there || listed.is_some_and(|listed| listed.add(needed, true, files)) {
            continue;
        }
        let Some(beside) = file.beside(needed) else {
            let what = format!(
                "the module file {word} needs the module {needed}, which neither the kernel {} nor the directory of the \
                 file has",
                kernel.version
            );
            return Err(guest_error(what, "put the file of the needed module into the same directory"));
        };
        add_file(&beside.to_string_lossy(), (kernel, listed), needed_by, files)?;
    }
    needed_by.pop();
    files.push(Module { file: file.path, is_own: true, required: true });
    Ok(())
}

/// Content of modules.dep, modules.builtin, modules.softdep and modules.alias (modules.dep(5), modprobe.d(5)).
struct Listed {
    /// Name of a module -> its file and the files on which it depends; the last of these files is loaded first.
    needs: BTreeMap<String, (String, Vec<String>)>,
    builtin: BTreeSet<String>,
    /// Name of a module -> its soft dependencies: names or aliases of modules that it uses without needing their
    /// symbols.
    before: BTreeMap<String, Vec<String>>,
    aliases: Vec<(String, String)>,
}

impl Listed {
    fn read(directory: &Path) -> Result<Listed, Problem> {
        let path = directory.join("modules.dep");
        let text = std::fs::read_to_string(&path).map_err(file_error("read", &path))?;
        let needs = text.lines().filter_map(|line| {
            let (file, needs) = line.split_once(':')?;
            Some((name(file), (file.to_owned(), needs.split_whitespace().map(str::to_owned).collect())))
        });
        // A kernel without built-in modules has no such file.
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
                    // A module can have several lines.
                    all.entry(module).or_default().extend(wanted);
                    all
                },
            ),
            aliases: aliases.collect(),
        })
    }

    /// Adds to the list the files of a module that are not in it yet; `false` if the kernel has no such module.
    fn add(&self, module: &str, required: bool, files: &mut Vec<Module>) -> bool {
        let Some((file, needs)) = self.needs.get(&name(module)) else { return self.builtin.contains(&name(module)) };
        for file in needs.iter().rev().chain([file]) {
            let is_same = |there: &&mut Module| name(&there.file.to_string_lossy()) == name(file);
            if let Some(there) = files.iter_mut().find(is_same) {
                there.required |= required;
                continue;
            }
            // An alias can mean several modules, and some of them may not fit the processor, so none of them is
            // required.
            for wanted in self.before.get(&name(file)).into_iter().flatten().filter(|wanted| **wanted != name(module)) {
                let named = self.aliases.iter().filter(|(alias, _)| alias == wanted).map(|(_, module)| module);
                for soft in [wanted].into_iter().chain(named) {
                    self.add(soft, false, files);
                }
            }
            files.push(Module { file: PathBuf::from(file), is_own: false, required });
        }
        true
    }
}

/// Path of a kernel module in the initramfs. The file name contains the position of the module in the load order, and
/// whether the module is required.
pub(crate) fn place(number: usize, name: &str, required: bool) -> String {
    format!("modules/{number:03}-{name}{}", if required { ".ko" } else { MAYBE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module_file::tests::module;

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
    fn dependencies_are_loaded_once_and_before_their_module() {
        let dir = tempfile::tempdir().unwrap();
        let chosen = choose(&kernel(dir.path()), &["sch_odd".into()], &["veth"]).unwrap();
        let names = |chosen: &[Module]| chosen.iter().map(|m| name(m.file.to_str().unwrap())).collect::<Vec<_>>();
        assert_eq!(names(&chosen), ["virtio", "virtio_ring", "virtio_pci", "virtio_net", "sch_odd", "veth"]);
        assert_eq!(chosen.iter().filter(|m| m.required).count(), 5);
        assert!(chosen[2].file.ends_with("kernel/virtio/virtio_pci.ko.xz"));
        // A soft dependency by an alias is loaded first, and may be missing.
        std::fs::write(dir.path().join("modules.softdep"), "softdep sch_odd pre: sums post: x\n").unwrap();
        std::fs::write(dir.path().join("modules.alias"), "alias sums veth\nalias sums none\n").unwrap();
        let chosen = choose(&kernel(dir.path()), &["sch_odd".into()], &[]).unwrap();
        assert_eq!(names(&chosen)[4..], ["veth", "sch_odd"]);
        assert_eq!(chosen.iter().map(|m| m.required).collect::<Vec<_>>(), [true, true, true, true, false, true]);
    }

    #[test]
    fn a_missing_module_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let known = kernel(dir.path());
        let refused = |kernel: &Kernel| choose(kernel, &["netdevsim".into()], &[]).unwrap_err().paragraph();
        let none = Kernel { modules: None, ..known.clone() };
        let mut texts = vec![refused(&known), refused(&none)];
        std::fs::write(dir.path().join("modules.builtin"), "").unwrap();
        texts.push(refused(&known));
        insta::assert_snapshot!(texts.join("\n"));
    }

    /// Test: files of modules come after what they need, from the kernel or from their directory, and take the place of the module
    /// of the kernel with the same name.
    #[test]
    fn a_file_is_loaded_with_the_modules_that_it_needs() {
        let (dir, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = |name: &str| own.path().join(name).display().to_string();
        module(Path::new(&path("card-x.ko")), "6.1.0-x", "mock,sch_odd");
        module(Path::new(&path("mock.ko")), "6.1.0-x", "");
        module(Path::new(&path("veth.ko")), "6.1.0-x", "");
        let wanted = ["card-x.ko", "veth.ko", "mock.ko"].map(path);
        let chosen = choose(&kernel(dir.path()), &wanted, &["veth"]).unwrap();
        let names: Vec<_> = chosen.iter().map(|m| name(m.file.to_str().unwrap())).collect();
        let needed = ["virtio", "virtio_ring", "virtio_pci", "virtio_net"];
        assert_eq!(names, [&["mock", "sch_odd", "card_x", "veth"][..], &needed].concat());
        assert_eq!(chosen.iter().filter(|m| m.is_own).count(), 3);
        assert!(chosen.iter().all(|m| m.required && m.is_own == m.file.starts_with(own.path())), "{chosen:?}");
        // Without a directory of modules, a file is loaded all the same.
        let none = Kernel { modules: None, ..kernel(dir.path()) };
        assert_eq!(choose(&none, &wanted[1..2], &["veth"]).unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_is_no_module_of_the_kernel_is_refused() {
        let (dir, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = |name: &str| own.path().join(name).display().to_string();
        std::fs::write(path("text.ko"), "text").unwrap();
        std::fs::copy(std::env::current_exe().unwrap(), path("program.ko")).unwrap();
        module(Path::new(&path("other.ko")), "6.1.0-56-rt-amd64", "");
        module(Path::new(&path("card.ko")), "6.1.0-x", "mock");
        // Modules that need themselves, directly and by another one.
        module(Path::new(&path("self.ko")), "6.1.0-x", "self");
        module(Path::new(&path("first.ko")), "6.1.0-x", "second");
        module(Path::new(&path("second.ko")), "6.1.0-x", "third");
        module(Path::new(&path("third.ko")), "6.1.0-x", "second");
        let refused = |file: &str| choose(&kernel(dir.path()), &[path(file)], &[]).unwrap_err().paragraph();
        let texts = ["gone.ko", "text.ko", "program.ko", "other.ko", "card.ko", "self.ko", "first.ko"];
        let texts = texts.map(refused).join("\n");
        insta::assert_snapshot!(texts.replace(&own.path().display().to_string(), "DIR"));
    }
}
