#!/usr/bin/env python3
"""Writes an OCI archive of one layer: image.py ARCHIVE NAME:TAG ENTRYPOINT [FILE=PATH | TARGET->PATH]...

FILE=PATH puts a file of this machine at PATH, executable; TARGET->PATH makes a symbolic link. The same input gives
the same bytes: no time of day, no user names."""
import hashlib, io, json, platform, sys, tarfile


def add(tar, path, data=None, kind=tarfile.REGTYPE, mode=0o755, link=""):
    entry = tarfile.TarInfo(path)
    entry.type, entry.mode, entry.linkname, entry.size = kind, mode, link, len(data or b"")
    tar.addfile(entry, io.BytesIO(data or b""))


def layer(items):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for directory in ("bin", "etc", "proc", "sys", "dev", "tmp"):
            add(tar, directory, kind=tarfile.DIRTYPE, mode=0o1777 if directory == "tmp" else 0o755)
        add(tar, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n", mode=0o644)
        for item in items:
            if "->" in item:
                target, path = item.split("->")
                add(tar, path.lstrip("/"), kind=tarfile.SYMTYPE, link=target)
            else:
                file, path = item.rsplit("=", 1)
                with open(file, "rb") as source:
                    add(tar, path.lstrip("/"), source.read())
    return out.getvalue()


def main(archive, name, entrypoint, *items):
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    blobs = {}

    def blob(data, kind):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    files = blob(layer(items), "layer.v1.tar")
    config = {"architecture": machine, "os": "linux", "config": {"Entrypoint": [entrypoint], "Env": ["PATH=/bin"]},
              "rootfs": {"type": "layers", "diff_ids": [files["digest"]]}}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": blob(json.dumps(config).encode(), "config.v1+json"), "layers": [files]}
    listed = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    listed["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rsplit(":", 1)[-1]}
    with tarfile.open(archive, "w") as tar:
        add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}', mode=0o644)
        add(tar, "index.json", json.dumps({"schemaVersion": 2, "manifests": [listed]}).encode(), mode=0o644)
        for digest, data in blobs.items():
            add(tar, f"blobs/sha256/{digest}", data, mode=0o644)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
