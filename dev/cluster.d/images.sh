# shellcheck shell=bash
# Images without a registry: archives, given to each node's containerd.

# One small program is the first process both of the places and of the pods' sandboxes; it is built where it is not yet.
reaper() { local sum; sum=$(sha256sum <"$cluster_dir/pause.c"); echo "${XDG_CACHE_HOME:-$HOME/.cache}/tailbound/cluster/pause-${sum:0:16}"; }
build_reaper() {
  local out; out=$(reaper)
  [ ! -x "$out" ] || return 0
  mkdir -p "${out%/*}"
  cc -Os -static -o "$out.partial" "$cluster_dir/pause.c" || die "cannot build $cluster_dir/pause.c; install a C compiler by: dev/setup cluster"
  mv "$out.partial" "$out"
}

import_image() { # archive node
  local to="$state/$2/image.tar"
  # The node sees the directory of the state, and not everywhere else where an archive may lie.
  cp "$1" "$to"
  enter "$2" timeout 300 ctr -n k8s.io images import "$to" || { rm -f "$to"; return 1; }
  rm -f "$to"
}
load_image() { # archive
  local node
  [ -f "$1" ] || die "there is no file $1"
  for node in node1 node2; do
    import_image "$1" "$node" || die "$node did not take $1 (see above); it has to be an OCI archive or one of docker save"
  done
}
load_pause() { # node
  "$cluster_dir/image.py" "$state/$1/pause.tar" tailbound.invalid/pause:1 /pause "$(reaper)=/pause"
  import_image "$state/$1/pause.tar" "$1" >/dev/null
  rm "$state/$1/pause.tar"
}
