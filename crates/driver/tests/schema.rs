//! The committed schema of `describe` is the one of the types.

use tailbound_driver::Description;

/// `TAILBOUND_REGENERATE=1` writes it anew.
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
