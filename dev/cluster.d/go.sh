# shellcheck shell=bash
# Finds or downloads a version of Go that is new enough for the cluster; Debian's version is too old.

go_version=1.25.5
# sha256 of the module golang.org/toolchain of that version, as in the checksum database of Go.
declare -A go_sums=([x86_64]=8cea6783dab64d68b38f5b81ecd38d45155a3c06638991acc6af19e0fca80edb)
go_dir() { echo "${XDG_CACHE_HOME:-$HOME/.cache}/tailbound/cluster/go-$go_version"; }

# The module that needs the newest Go. From 1.21 on, a Go that is too old downloads a newer one, unless its settings forbid that.
suits() { (cd "$cluster_dir/go/kubernetes" && GOFLAGS=-mod=readonly GOWORK=off "$1" list -m) >/dev/null 2>&1; }

find_go() {
  local go
  for go in "$(command -v go)" /usr/local/go/bin/go "$(go_dir)/bin/go"; do
    if [ -x "$go" ] && suits "$go"; then PATH="${go%/*}:$PATH"; return; fi
  done
  return 1
}

fetch_go() {
  local machine file out proxy sum
  machine=$(uname -m); out=$(go_dir); proxy=${GOPROXY:-https://proxy.golang.org}; proxy=${proxy%%[,|]*}
  sum=${go_sums[$machine]:-}
  [ -n "$sum" ] || { echo "this script has no checksum of Go $go_version for $machine; install Go $go_version or newer by hand: https://go.dev/dl" >&2; return 1; }
  echo "downloading Go $go_version from $proxy"
  mkdir -p "${out%/*}"
  file=$(mktemp -d "$out.XXXXXX")
  curl -fsS --max-time 600 -o "$file/zip" "$proxy/golang.org/toolchain/@v/v0.0.1-go$go_version.linux-amd64.zip" &&
    echo "$sum  $file/zip" | sha256sum --quiet --check &&
    python3 -m zipfile -e "$file/zip" "$file" &&
    # The archive of a module contains no file modes.
    find "$file/golang.org" -path '*/bin/*' -exec chmod +x {} + &&
    find "$file/golang.org" -path '*/pkg/tool/*' -type f -exec chmod +x {} + &&
    mv "$file"/golang.org/toolchain@* "$out" || { rm -rf "$file"; return 1; }
  rm -rf "$file"
}
