# shellcheck shell=bash
# Removes everything, also what an interrupted `up` left behind. The script can run again.

down() {
  local file pid start net; local -a held=()
  if [ ! -e "$state" ]; then echo "dev/cluster: no cluster is running"; return; fi
  rm -f "$state/ready"
  # If a network namespace is removed too early, connections from the other namespaces get no answer, and these namespaces
  # stay for minutes. So all namespaces are kept until the connections of the killed programs are closed.
  for file in "$state"/*/first; do
    runs "$file" || continue
    read -r pid start <"$file"
    exec {net}<"/proc/$pid/ns/net"
    held+=("$net")
  done
  # Ends the first processes of the places, whose ids `up` stored; all other processes of the places end with them. Also ends
  # the processes that wait for them; after an interrupted `up`, only one of the two may exist.
  for file in "$state"/*/first "$state"/*/unshare; do
    ! runs "$file" || { read -r pid start <"$file"; kill -KILL "$pid"; }
  done
  for file in "$state"/*/first "$state"/*/unshare; do
    [ -e "$file" ] || continue
    read -r pid start <"$file"
    wait_for 30 "the end of process $pid ($file)" gone "$pid" "$start" || return
  done
  for net in "${held[@]}"; do
    wait_for 5 "the end of all connections in a place" no_connections "$net" || true
    exec {net}<&-
  done
  # The interface disappears with the namespace at its other end, some time after the last process of that namespace.
  wait_for 10 "the end of the interface $host_link" no_host_link || ip link delete "$host_link"
  wait_for 30 "the end of the cgroups $cluster_name" remove_cgroups || return
  rm -rf "$state"
  echo "dev/cluster: the cluster was removed"
}
no_connections() { [ -z "$(nsenter --net="/proc/$$/fd/$1" ss -Htn state connected exclude time-wait)" ]; }
no_host_link() { ! ip link show "$host_link"; }
cgroups() { find /sys/fs/cgroup -maxdepth 2 -type d -name "$cluster_name"; }
remove_cgroups() {
  local dir
  for dir in $(cgroups); do find "$dir" -depth -type d -exec rmdir {} +; done
  [ -z "$(cgroups)" ]
}
