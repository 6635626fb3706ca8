//! Exports `pthread_create` and `pthread_setname_np`, so that threads of drivers that are loaded later are seen at birth
//! and by their names too.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for symbol in ["pthread_create", "pthread_setname_np"] {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={symbol}");
    }
}
