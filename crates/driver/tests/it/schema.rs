//! Tests that the committed schema of `describe` is the schema of the Rust types.

use tailbound_driver::Description;

/// Compares the schemas; with `TAILBOUND_REGENERATE=1` the test writes the committed schema again.
#[test]
fn schema_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/driver.json");
    let made = format!("{:#}\n", schemars::schema_for!(Description).to_value());
    if std::env::var_os("TAILBOUND_REGENERATE").is_some_and(|v| v == "1") {
        std::fs::write(path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == made, "schema/driver.json is not current; run this test with TAILBOUND_REGENERATE=1");
}
