# shellcheck shell=bash
# Takes everything away. Also what an `up` that was cut short left; and it may be run again.

down() {
  local file pid start net; local -a held=()
  if [ ! -e "$state" ]; then echo "dev/cluster: no cluster is up"; return; fi
  rm -f "$state/ready"
  # A network namespace that goes too early leaves the others with connections that nobody answers, which hold them for
  # minutes. So all are held until the connections of what was killed are closed.
  for file in "$state"/*/first; do
    runs "$file" || continue
    read -r pid start <"$file"
    exec {net}<"/proc/$pid/ns/net"
    held+=("$net")
  done
  # The first processes of the places, as `up` wrote them down; what runs in the places ends with them. And those that
  # wait for them, of which there may be one without the other when `up` was cut short.
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
  # It goes with the namespace at its other end, some time after the last process there.
  wait_for 10 "the end of the interface $host_link" no_host_link || ip link delete "$host_link"
  wait_for 30 "the end of the cgroups $cluster_name" remove_cgroups || return
  rm -rf "$state"
  echo "dev/cluster: down"
}
no_connections() { [ -z "$(nsenter --net="/proc/$$/fd/$1" ss -Htn state connected exclude time-wait)" ]; }
no_host_link() { ! ip link show "$host_link"; }
cgroups() { find /sys/fs/cgroup -maxdepth 2 -type d -name "$cluster_name"; }
remove_cgroups() {
  local dir
  for dir in $(cgroups); do find "$dir" -depth -type d -exec rmdir {} +; done
  [ -z "$(cgroups)" ]
}
