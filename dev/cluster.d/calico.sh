# shellcheck shell=bash
# Calico with VXLAN, which enforces network policies. Its daemons run beside the kubelet and not in pods. Its
# controllers do not run, so the addresses of a deleted node stay in use.

build_calico() {
  # Felix is partly written in C. It reads about pods from resources of its own kinds, which its module describes.
  local out; out=$(built_dir calico)
  if [ ! -d "$out" ]; then
    local header
    for header in /usr/include/bpf/libbpf.h /usr/include/libelf.h /usr/include/pcap/pcap.h; do
      [ -e "$header" ] || die "building Calico needs $header, which is missing; install it: dev/setup cluster"
    done
  fi
  CGO_CFLAGS="-I/usr/include/bpf -Wno-error" build_module calico 1 "" \
    github.com/projectcalico/calico/cni-plugin/cmd/calico github.com/projectcalico/calico/node/cmd/calico-node
  [ -e "$out/crds.yaml" ] || {
    find_go
    cp "$(module_dir calico github.com/projectcalico/calico)/manifests/crds.yaml" "$out/crds.yaml.new"
    chmod u+w "$out/crds.yaml.new"; mv "$out/crds.yaml.new" "$out/crds.yaml"
  }
  bin_calico=$out
}

calico_env() { # number of the node
  echo DATASTORE_TYPE=kubernetes KUBECONFIG="$state/kubeconfig" NODENAME="node$1" FELIX_FELIXHOSTNAME="node$1" FELIX_DATASTORETYPE=kubernetes
  echo IP="$(node_address "$1")/24" CALICO_NETWORKING_BACKEND=vxlan WAIT_FOR_DATASTORE=true CALICO_MANAGE_CNI=false
  echo CALICO_IPV4POOL_CIDR="$pods" CALICO_IPV4POOL_VXLAN=Always CALICO_IPV4POOL_IPIP=Never
  # Many kernels have no IP-in-IP. Usage reports are off.
  echo FELIX_IPINIPENABLED=false FELIX_IPV6SUPPORT=false FELIX_XDPENABLED=false FELIX_USAGEREPORTINGENABLED=false
  echo FELIX_IPTABLESBACKEND=NFT FELIX_DEFAULTENDPOINTTOHOSTACTION=ACCEPT
  echo FELIX_LOGSEVERITYSCREEN=info FELIX_LOGFILEPATH=none FELIX_LOGSEVERITYFILE=none FELIX_LOGSEVERITYSYS=none
}

cni_calico() {
  local i; local -a environment
  kube create -f "$bin_calico/crds.yaml" >/dev/null
  kube wait --for=condition=Established crd --all --timeout=30s --request-timeout=35s >/dev/null
  for i in 1 2; do
    read -r -d '' -a environment < <(calico_env "$i") || true
    enter "node$i" cp "$bin_calico/calico" /run/cni/bin/calico
    enter "node$i" cp "$bin_calico/calico" /run/cni/bin/calico-ipam
    enter "node$i" mkdir -p /run/calico /var/lib/calico
    enter "node$i" timeout 60 env "${environment[@]}" "$bin_calico/calico-node" -startup >"$state/node$i/log/calico-startup" 2>&1 || {
      echo "dev/cluster: Calico did not start on node$i within 60 s ($state/node$i/log/calico-startup)" >&2; return 1; }
    spawn "node$i" calico-tunnel env "${environment[@]}" "$bin_calico/calico-node" -allocate-tunnel-addrs
    cni_config "node$i" 10-calico.conflist <<J
{"cniVersion": "0.3.1", "name": "k8s-pod-network", "plugins": [
  {"type": "calico", "datastore_type": "kubernetes", "nodename": "node$i", "mtu": 1450, "log_level": "info",
   "ipam": {"type": "calico-ipam"}, "policy": {"type": "k8s"}, "kubernetes": {"kubeconfig": "$state/kubeconfig"}},
  {"type": "portmap", "snat": true, "capabilities": {"portMappings": true}}]}
J
  done
  for i in 1 2; do
    # Felix ends when the address of its tunnel changes, so that a supervisor restarts it. The address is therefore set before Felix starts.
    wait_for 60 "the tunnel's address of Calico on node$i ($state/node$i/log/calico-tunnel)" calico_tunnel "node$i" || return
    read -r -d '' -a environment < <(calico_env "$i") || true
    spawn "node$i" felix env "${environment[@]}" "$bin_calico/calico-node" -felix
  done
  for i in 1 2; do
    wait_for 60 "the tunnel of Calico on node$i ($state/node$i/log/felix)" enter "node$i" ip link show vxlan.calico || return
  done
}
calico_tunnel() { [ -n "$(kube get node "$1" -o 'jsonpath={.metadata.annotations.projectcalico\.org/IPv4VXLANTunnelAddr}')" ]; }
