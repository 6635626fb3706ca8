//! Fuzzes the files of a record (the manifest and the segments) with arbitrary bytes: the result is an error or a
//! report, never a panic.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use tailbound_record::Record;

static DIR: LazyLock<PathBuf> = LazyLock::new(|| {
    let dir = std::env::temp_dir().join(format!("tailbound-fuzz-{}", std::process::id()));
    fs::create_dir_all(dir.join("samples/0")).unwrap();
    dir
});
static MANIFEST: &[u8] = include_bytes!("../seeds/record/manifest.json");

// The first byte selects the file that the rest is written to: the manifest, the ping segment or the pong segment.
fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = bytes.split_first() else { return };
    let file = match which % 3 {
        0 => "manifest.json",
        1 => "samples/0/ping-0.parquet",
        _ => "samples/0/pong-0.parquet",
    };
    if which % 3 != 0 {
        fs::write(DIR.join("manifest.json"), MANIFEST).unwrap();
    }
    fs::write(DIR.join(file), rest).unwrap();
    if let Ok(record) = Record::open(&DIR) {
        let _ = tailbound_report::analyse(&record);
    }
});
