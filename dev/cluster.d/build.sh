# shellcheck shell=bash
# Builds the programs of the cluster from the Go module proxy, once, into a cache outside the tree.
# Needs: cluster_dir. Gives: bin_kubernetes, bin_dns, bin_flannel, bin_flannel_cni (directories).

kubernetes_version=v1.34.4

# The name of a build is what it is built from, so another version never finds the programs of this one.
built_dir() { # module
  local sum
  sum=$(cat "$cluster_dir/go/$1"/* | sha256sum)
  echo "${XDG_CACHE_HOME:-$HOME/.cache}/tailbound/cluster/$1-${sum:0:16}"
}

build_module() { # module cgo ldflags package...
  local module=$1 cgo=$2 ldflags=$3 out source began=$SECONDS
  shift 3; out=$(built_dir "$module"); source=$cluster_dir/go/$module
  [ ! -d "$out" ] || return 0
  find_go || die "no go found that can build this, which Debian's cannot (1.25, or from 1.21 one that may fetch it); install it by: dev/setup cluster"
  echo "dev/cluster: building $module (once; $* )" >&2
  mkdir -p "$out.partial"
  if [ -e "$source/patch" ]; then patched "$source" "$out.partial/source"; source=$out.partial/source; fi
  # The go.sum of the tree decides what is built: nothing is written to it here. A toolchain newer than the installed
  # one is fetched by go itself, unless its settings forbid that.
  (cd "$source" && umask 022 && GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=$cgo nice -n 10 \
    timeout 3600 go build -p 2 -trimpath -buildvcs=false -ldflags "-s -w $ldflags" -o "$out.partial/" "$@") ||
    die "building $module failed (go says why above); it needs the Go module proxy: go env GOPROXY"
  rm -rf "$out.partial/source"
  mv "$out.partial" "$out"
  echo "dev/cluster: built $module in $((SECONDS - began)) s" >&2
}

module_dir() { # module, the one that it requires: where go keeps it, checked against the sums of the tree
  (cd "$cluster_dir/go/$1" && GOFLAGS=-mod=readonly GOWORK=off go mod download "$2" && go list -m -f '{{.Dir}}' "$2")
}
# A copy of the module that the directory requires, with its patch. Its own go.sum, which is in it, vouches for the rest.
patched() { # directory copy
  local from required
  required=$(sed -n 's/^require \([^ ]*\) .*/\1/p' "$1/go.mod")
  from=$(module_dir "${1##*/}" "$required") || die "$required cannot be had (go says why above); it needs the Go module proxy: go env GOPROXY"
  rm -rf "$2"; cp -r "$from" "$2"; chmod -R u+w "$2"
  patch --quiet --directory "$2" --strip 1 <"$1/patch" || die "$1/patch does not fit $required"
}

build_kubernetes() {
  local component stamp=
  # Programs that do not know their release refuse each other; the source of the module carries none.
  for component in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    stamp+=" -X $component.gitVersion=$kubernetes_version -X $component.gitMajor=1 -X $component.gitMinor=34"
  done
  build_module kubernetes 0 "$stamp" \
    k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubelet,kube-proxy,kubectl}
  bin_kubernetes=$(built_dir kubernetes)
}

build_dns() {
  # A module of this tree: CoreDNS with the few of its plugins that are wanted here.
  build_module coredns 0 "" .
  bin_dns=$(built_dir coredns)
}

build_flannel() {
  # One of its backends is in C.
  build_module flannel 1 "-X github.com/flannel-io/flannel/pkg/version.Version=v0.28.4" github.com/flannel-io/flannel
  build_module flannel-cni 0 "" github.com/containernetworking/plugins/plugins/meta/flannel
  bin_flannel=$(built_dir flannel); bin_flannel_cni=$(built_dir flannel-cni)
}
