"""vendor.py PACKED CACHE VENDOR: unpacks the packages of PACKED, and those of the lock file from cargo's CACHE, as a directory source of
cargo. Each file that a package of PACKED embeds (include_str!, include_bytes!) must be in the package."""
import hashlib, json, pathlib, re, sys, tarfile, tomllib

packed, cache, vendor = map(pathlib.Path, sys.argv[1:])


def unpack(crate):
    with tarfile.open(crate) as archive:
        archive.extractall(vendor, filter="data")
    folder = vendor / crate.stem
    checksum = hashlib.sha256(crate.read_bytes()).hexdigest()
    (folder / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": checksum}))
    return folder


missing = []
for crate in sorted(packed.glob("*.crate")):
    folder = unpack(crate)
    for source in folder.glob("src/**/*.rs"):
        for path in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"', source.read_text()):
            # Files of tests stay in the checkout.
            if not (source.parent / path).is_file() and "/fixtures/" not in path:
                missing.append(f"{source.relative_to(vendor)} embeds {path}, which is not in its package")
if missing:
    sys.exit("dev/packages: " + "\n".join(missing))
own = {crate.stem for crate in packed.glob("*.crate")}
for package in tomllib.loads(pathlib.Path("Cargo.lock").read_text())["package"]:
    name = f"{package['name']}-{package['version']}"
    if name not in own and "source" in package:
        unpack(next(c for c in cache.glob(f"*/{name}.crate") if hashlib.sha256(c.read_bytes()).hexdigest() == package["checksum"]))
