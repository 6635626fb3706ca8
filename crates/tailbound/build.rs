//! Exports `pthread_create`, so that threads of drivers that are loaded later are seen at birth too.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=pthread_create");
}
