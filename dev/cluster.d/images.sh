# shellcheck shell=bash
# Images without a registry: archives that are imported into the containerd of each node.

# One small program is the first process of the places and of the pod sandboxes; it is built if it does not exist yet.
reaper() { local sum; sum=$(sha256sum <"$cluster_dir/pause.c"); echo "${XDG_CACHE_HOME:-$HOME/.cache}/tailbound/cluster/pause-${sum:0:16}"; }
build_reaper() {
  local out; out=$(reaper)
  [ ! -x "$out" ] || return 0
  mkdir -p "${out%/*}"
  cc -Os -static -o "$out.partial" "$cluster_dir/pause.c" || die "cannot build $cluster_dir/pause.c; install a C compiler: dev/setup cluster"
  mv "$out.partial" "$out"
}

import_image() { # archive node
  local to="$state/$2/image.tar"
  # The node sees the directory of the state, but not every directory in which an archive may be.
  cp "$1" "$to"
  enter "$2" timeout 300 ctr -n k8s.io images import "$to" || { rm -f "$to"; return 1; }
  rm -f "$to"
}
load_image() { # archive
  local node
  [ -f "$1" ] || die "the file $1 does not exist"
  for node in node1 node2; do
    import_image "$1" "$node" || die "$node could not import $1 (see above); the file must be an OCI archive or the output of docker save"
  done
}
load_pause() { # node
  "$cluster_dir/image.py" "$state/$1/pause.tar" tailbound.invalid/pause:1 /pause "$(reaper)=/pause"
  import_image "$state/$1/pause.tar" "$1" >/dev/null
  rm "$state/$1/pause.tar"
}
