//! Tests of studies with errors: there are one file and one snapshot for each error. The first lines of a file may have
//! directives: `# set:`, `# cpus:`, `# drivers:`, `# limit:`, `# limit-at:`, `# strict`.

use std::fmt::Write;
use std::path::Path;
use tailbound_model::{Problem, TrialSpec};
use tailbound_study::{Options, load_str_with};

fn directive<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let prefix = format!("# {name}: ");
    text.lines().filter_map(|line| line.strip_prefix(&prefix)).collect()
}

fn words<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    directive(text, name).into_iter().flat_map(str::split_whitespace).collect()
}

#[test]
fn each_broken_study_has_its_error() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let mut files: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "yaml"));
    files.sort();
    assert!(files.len() >= 45, "only {} broken studies", files.len());
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("../broken/errors");
    let _bound = settings.bind_to_scope();
    for path in files {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let set: Vec<String> = directive(&text, "set").into_iter().map(str::to_owned).collect();
        let cpus: Vec<u32> = words(&text, "cpus").iter().map(|c| c.parse().unwrap()).collect();
        let drivers = words(&text, "drivers");
        let key = directive(&text, "limit-at").first().copied().unwrap_or("payload").to_owned();
        let limit = directive(&text, "limit").first().map(|what| Problem::new("limit", *what, "").at(key));
        let limits = move |_: &TrialSpec| limit.clone();
        let options = Options {
            settings: &set,
            allowed_cpus: &cpus,
            strict: text.lines().any(|line| line == "# strict"),
            known_drivers: &drivers,
            tools: &[],
            limits: Some(&limits),
        };
        let Err(error) = load_str_with(&name, &text, &dir, &options) else { panic!("{name} was accepted") };
        assert!(error.line >= 1 && error.column >= 1, "{name} without a place: {error}");
        let mut shown = format!("{error}\n\n");
        write!(shown, "{}", error.render(false, 100)).unwrap();
        let shown: String = shown.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        insta::assert_snapshot!(stem, shown);
    }
}
