//! Exports `pthread_create` and `pthread_setname_np`, so that Tailbound sees the creation and the names of threads,
//! including the threads of drivers that are loaded later.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for symbol in ["pthread_create", "pthread_setname_np"] {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={symbol}");
    }
}
