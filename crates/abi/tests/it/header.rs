//! Tests that the committed C header is equal to the header that cbindgen writes from this crate. With
//! `TAILBOUND_REGENERATE=1` the test writes the header again.

use std::path::Path;

#[test]
fn header_is_up_to_date() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = here.join("../../include/tailbound_driver.h");
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("cbindgen.toml");
    let mut generated = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(here.join("src/types.rs"))
        .with_src(here.join("src/table.rs"))
        .generate()
        .expect("cbindgen")
        .write(&mut generated);
    // Links between Rust items have no meaning in C.
    let generated = String::from_utf8(generated).expect("UTF-8");
    let generated = generated.replace("[`crate::", "`").replace("[`", "`").replace("`]", "`");
    if std::env::var_os("TAILBOUND_REGENERATE").is_some() {
        std::fs::write(&header, &generated).expect("write the header");
    }
    let committed = std::fs::read_to_string(&header).unwrap_or_default();
    let differs = generated.lines().zip(committed.lines()).position(|(g, c)| g != c);
    assert!(
        generated == committed,
        "{} differs from crates/abi, first in line {}; run the test with TAILBOUND_REGENERATE=1",
        header.display(),
        differs.unwrap_or_else(|| generated.lines().count().min(committed.lines().count())) + 1,
    );
}
