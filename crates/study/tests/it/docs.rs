//! Tests that pages with a list of all places or all drivers have the whole list.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tailbound_study::schema;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the line of a page that contains `mark`; exactly one line must contain it.
fn line(page: &str, mark: &str) -> String {
    let text = fs::read_to_string(root().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"));
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(mark)).collect();
    let [line] = lines.as_slice() else { panic!("{page} has {} lines with `{mark}`", lines.len()) };
    (*line).to_owned()
}

/// Each kind of place, as a study writes it, and the words that the pages use for it. A new kind of place needs a new
/// entry.
const PLACES: [(&str, &str); 9] = [
    ("same-process", "process"),
    ("process", "process"),
    ("netns", "network namespace"),
    ("existing-netns", "network namespace"),
    ("ssh", "host"),
    ("pod", "pod"),
    ("container", "container"),
    ("vm", "virtual machine"),
    ("domain", "virtual machine"),
];

#[test]
fn lists_of_places_have_every_place() {
    let schema = schema();
    let choices = schema["$defs"]["PlaceChoice"]["oneOf"].as_array().expect("the choices of a place");
    let word = |choice: &serde_json::Value| match choice["const"].as_str() {
        Some(word) => word.to_owned(),
        None => choice["properties"].as_object().and_then(|keys| keys.keys().next()).expect("one key").clone(),
    };
    let of_schema: BTreeSet<String> = choices.iter().map(word).collect();
    assert_eq!(of_schema, PLACES.map(|(place, _)| place.to_owned()).into());
    for (page, mark) in [
        ("README.md", " measures latency, throughput and fan-out between "),
        ("docs/src/introduction.md", "This release measures "),
        ("docs/src/concepts.md", "| place |"),
    ] {
        let list = line(page, mark);
        for (place, words) in PLACES {
            assert!(list.contains(words), "{page} does not name the place {place}: {list}");
        }
    }
}

#[test]
fn lists_of_drivers_have_every_driver() {
    // Directories below `drivers` that are not drivers for a user.
    const OTHERS: [&str; 3] = ["broken", "skeleton", "so"];
    let directories = fs::read_dir(root().join("drivers")).unwrap().map(|entry| entry.unwrap());
    let names = directories.filter(|d| d.path().is_dir()).map(|d| d.file_name().into_string().unwrap());
    let drivers: Vec<String> = names.filter(|name| !OTHERS.contains(&name.as_str())).collect();
    assert!(drivers.len() >= 5, "{drivers:?}");
    let concepts = line("docs/src/concepts.md", "| driver |");
    let table = line("docs/src/drivers.md", "| | [`");
    let readme = line("README.md", "| [Drivers](");
    for driver in drivers {
        let page = format!("driver-{driver}.md");
        assert!(concepts.contains(&format!("`{driver}`")), "concepts.md does not name the driver {driver}");
        assert!(table.contains(&format!("[`{driver}`]({page})")), "drivers.md has no column for the driver {driver}");
        let entry = line("docs/src/SUMMARY.md", &format!("]({page})"));
        let (_, title) = entry.split_once('[').expect("a link");
        let title = title.split_once(']').expect("a link").0;
        assert!(readme.contains(title), "README.md does not name the driver {driver} ({title})");
    }
}
