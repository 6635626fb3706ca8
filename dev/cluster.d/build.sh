# shellcheck shell=bash
# Builds the programs of the cluster from the Go module proxy, once, into a cache outside the tree.
# Needs: cluster_dir. Sets the directories bin_kubernetes (which also contains CoreDNS), bin_flannel and bin_flannel_cni.

kubernetes_version=v1.34.4

# Flannel needs cgo and is therefore built by itself, but from the module of Kubernetes, whose packages it shares.
module_of() { if [ "$1" = flannel ]; then echo kubernetes; else echo "$1"; fi; }

# The name of a build contains a hash of its sources, so another version never uses the programs of this version.
built_dir() { # module, or flannel
  local sum
  sum=$(find "$cluster_dir/go/$(module_of "$1")" -type f | LC_ALL=C sort | tr '\n' '\0' | xargs -0 cat | sha256sum)
  echo "${XDG_CACHE_HOME:-$HOME/.cache}/tailbound/cluster/$1-${sum:0:16}"
}

build_module() { # module (or flannel) cgo ldflags package...
  local module=$1 cgo=$2 ldflags=$3 out source began=$SECONDS
  shift 3; out=$(built_dir "$module"); source=$cluster_dir/go/$(module_of "$module")
  [ ! -d "$out" ] || return 0
  find_go || die "no Go was found that can build the cluster (Go 1.24, or Go 1.21 and later if it may download 1.24; Debian's Go is too old); install it: dev/setup cluster"
  echo "dev/cluster: building $module (once; $* )" >&2
  mkdir -p "$out.partial"
  if [ -e "$source/patch" ]; then patched "$source" "$out.partial/source"; source=$out.partial/source; fi
  # The go.sum of the tree decides what is built, and is not changed. If a newer toolchain is necessary, go downloads it,
  # unless its settings forbid that.
  # GOGC, GOMEMLIMIT: the compiler collects garbage only if it uses more memory than most packages need.
  # dwarf: -s -w leaves the debug information out, so none is made; that is a tenth of the compiler's time.
  # tags: names and users are looked up without C, so that a build with cgo shares net and all above it with those without.
  (cd "$source" && umask 022 && GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=$cgo GOGC=off GOMEMLIMIT=2GiB nice -n 10 \
    timeout 3600 go build -p 2 -trimpath -buildvcs=false -tags netgo,osusergo -gcflags=all=-dwarf=false \
    -ldflags "-s -w $ldflags" -o "$out.partial/" "$@") ||
    die "building $module failed (see the messages of go above); the build needs the Go module proxy: go env GOPROXY"
  rm -rf "$out.partial/source"
  mv "$out.partial" "$out"
  echo "dev/cluster: built $module in $((SECONDS - began)) s" >&2
}

module_dir() { # module, the one that it requires: where go keeps it, checked against the sums of the tree
  (cd "$cluster_dir/go/$1" && GOFLAGS=-mod=readonly GOWORK=off go mod download "$2" && go list -m -f '{{.Dir}}' "$2")
}
# Makes a patched copy of the module that the directory requires. The go.sum of the module verifies its dependencies.
patched() { # directory copy
  local from required
  required=$(sed -n 's/^require \([^ ]*\) .*/\1/p' "$1/go.mod")
  from=$(module_dir "${1##*/}" "$required") || die "$required cannot be downloaded (see the messages of go above); this needs the Go module proxy: go env GOPROXY"
  rm -rf "$2"; cp -r "$from" "$2"; chmod -R u+w "$2"
  patch --quiet --directory "$2" --strip 1 <"$1/patch" || die "$1/patch does not fit $required"
}

build_kubernetes() {
  local component name out stamp=
  # Programs that do not know their release refuse each other; the source of the module contains no release.
  for component in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    stamp+=" -X $component.gitVersion=$kubernetes_version -X $component.gitMajor=1 -X $component.gitMinor=34"
  done
  out=$(built_dir kubernetes)
  # One program acts as each of these programs, depending on the name of the link that starts it. The links are made first, so
  # that a build whose program exists is complete.
  if [ ! -d "$out" ]; then
    mkdir -p "$out.partial"
    for name in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
      ln -sfn kubernetes "$out.partial/$name"
    done
  fi
  # The second program is CoreDNS with only the plugins that this cluster needs.
  build_module kubernetes 0 "$stamp" . ./coredns
  bin_kubernetes=$out
}

build_flannel() {
  # One backend of Flannel is written in C.
  build_module flannel 1 "-X github.com/flannel-io/flannel/pkg/version.Version=v0.26.7" github.com/flannel-io/flannel
  build_module flannel-cni 0 "" github.com/containernetworking/plugins/plugins/meta/flannel
  bin_flannel=$(built_dir flannel); bin_flannel_cni=$(built_dir flannel-cni)
}
