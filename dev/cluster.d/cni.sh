# shellcheck shell=bash
# Pod networks: the files in /etc/cni/net.d of the nodes, and the daemons of the networks.

# The file is written inside the directory: containerd 1.6 does not notice files that are moved there from another directory.
cni_config() { # node file-name < configuration
  enter "$1" sh -c "cat >/etc/cni/net.d/.new && mv /etc/cni/net.d/.new /etc/cni/net.d/$2"
}

start_cni() { "cni_$1"; }

cni_flannel() {
  local node
  # The network uses the usual daemon and plugin of Flannel; but the daemon runs beside the kubelet and not in a pod.
  echo "{\"Network\":\"$pods\",\"EnableIPv4\":true,\"Backend\":{\"Type\":\"vxlan\"}}" >"$state/flannel.json"
  for node in node1 node2; do
    spawn "$node" flanneld env NODE_NAME="$node" "$bin_flannel/flannel" --kube-subnet-mgr --kubeconfig-file="$state/kubeconfig" \
      --iface=eth0 --ip-masq --net-config-path="$state/flannel.json"
  done
  for node in node1 node2; do
    wait_for 60 "the subnet of Flannel on $node ($state/$node/log/flanneld)" enter "$node" test -s /run/flannel/subnet.env || return
    cni_config "$node" 10-flannel.conflist <<'J'
{"cniVersion": "0.3.1", "name": "cbr0", "plugins": [
  {"type": "flannel", "delegate": {"hairpinMode": true, "isDefaultGateway": true}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
J
  done
}

# Pods are behind a gateway of their node, and each place has routes to the pods of the other nodes.
routed() { # name, the plugin; RANGE in it is the range of the node's pods
  local i place range
  for i in 1 2; do
    range=$(pod_range "$i")
    for place in control node$((3 - i)); do
      enter "$place" ip route add "$range" via "$(node_address "$i")"
    done
    cni_config "node$i" "10-$1.conflist" <<J
{"cniVersion": "0.4.0", "name": "$1", "plugins": [
  ${2//RANGE/$range},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
J
  done
}
cni_bridge() {
  routed bridge '{"type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "RANGE"}]]}}'
}
cni_ptp() {
  routed ptp '{"type": "ptp",
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "RANGE"}]], "routes": [{"dst": "0.0.0.0/0"}]}}'
}
# Pods are neighbours of the nodes in the network between them. Neither Services nor their own node can reach these pods.
cni_macvlan() {
  local i
  for i in 1 2; do
    cni_config "node$i" 10-macvlan.conflist <<J
{"cniVersion": "0.4.0", "name": "macvlan", "plugins": [
  {"type": "macvlan", "master": "eth0", "mode": "bridge",
   "ipam": {"type": "host-local", "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "$lan.0/24", "gateway": "$api_address",
     "rangeStart": "$lan.$((i * 64))", "rangeEnd": "$lan.$((i * 64 + 62))"}]]}}]}
J
  done
}
