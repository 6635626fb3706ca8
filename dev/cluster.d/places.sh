# shellcheck shell=bash
# Places: control, node1 and node2. Each place is a first process that only reaps other processes, in namespaces of its own (network, UTS,
# IPC, processes, mounts). When it is killed, the kernel ends everything in the place and removes its mounts and
# interfaces: no process of the place has to be found by name.

start_of() { # pid: when it was started, which tells it from a later process of the same id
  local stat
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
  # shellcheck disable=SC2086 # fields; the name in parentheses may hold anything
  set -- ${stat##*) }
  # A zombie counts as ended.
  [ "$1" != Z ] && echo "${20}"
}
runs() { # file with a pid and its start
  local pid start
  { read -r pid start <"$1"; } 2>/dev/null && [ "$(start_of "$pid")" = "$start" ]
}
known_place() { [[ $1 = control || $1 = node1 || $1 = node2 ]] || misuse "no place '$1'; there are: control, node1, node2"; }
known_program() {
  known_place "${1%%/*}"
  [ -e "$state/${1%%/*}/${1#*/}.command" ] || misuse "there is no program '$1'; the programs are: $(programs)"
}
programs() { (cd "$state" && printf '%s ' */*.command | sed 's/[.]command//g'); }

only_child() { # pid
  local children=
  { read -r children <"/proc/$1/task/$1/children"; } 2>/dev/null
  [[ $children =~ ^[0-9]+$ ]] && child=$children
}

make_place() { # name
  local at=$state/$1 child program
  program=$(reaper)
  mkdir -p "$at/log"
  setsid unshare --net --uts --ipc --pid --mount --propagation slave --fork --kill-child --mount-proc \
    "$program" >"$at/log/place" 2>&1 </dev/null &
  disown
  echo "$! $(start_of $!)" >"$at/unshare"
  wait_for 5 "the first process of $1 ($at/log/place)" only_child $! || return
  echo "$child $(start_of "$child")" >"$at/first"
  # The process has all of its namespaces only when it runs the program.
  wait_for 5 "namespaces of $1 ($at/log/place)" executes "$child" "$program" || return
  enter "$1" hostname "$1"
  enter "$1" ip link set lo up
}
executes() { [ "$(readlink "/proc/$1/exe")" = "$2" ]; }

first_of() { local pid start; read -r pid start <"$state/$1/first"; echo "$pid"; }
into=(--net --uts --ipc --pid --mount)
enter() { # place command...
  local first; first=$(first_of "$1"); shift
  nsenter --target "$first" "${into[@]}" -- "$@"
}

spawn() { # place program command...
  local place=$1 name=$2
  shift 2; printf '%q ' "$@" >"$state/$place/$name.command"
  start_program "$place" "$name"
}
start_program() { # place program
  local at=$state/$1/$2 child first; local -a command
  ! runs "$at.pid" || { echo "dev/cluster: $1/$2 is running already"; return; }
  eval "command=($(<"$at.command"))"
  first=$(first_of "$1")
  # `enter` is not used, because the only child of this process must be the program.
  nsenter --target "$first" "${into[@]}" -- "${command[@]}" >>"$state/$1/log/$2" 2>&1 </dev/null &
  # The shell then prints no message when the program ends.
  disown
  wait_for 5 "$1/$2 as a process ($state/$1/log/$2)" only_child $! || return
  echo "$child $(start_of "$child")" >"$at.pid"
}
stop_program() { # place program
  local at=$state/$1/$2 pid start
  read -r pid start <"$at.pid"
  [ "$(start_of "$pid")" = "$start" ] || { echo "dev/cluster: $1/$2 is not running"; return; }
  kill "$pid"
  # When an API server ends, it waits up to a minute for its clients with open watch requests.
  wait_for 5 "the end of $1/$2, which is killed now" gone "$pid" "$start" || kill -KILL "$pid"
  wait_for 20 "the end of $1/$2" gone "$pid" "$start" || die "$1/$2 (process $pid) does not end"
}
gone() { [ "$(start_of "$1")" != "$2" ]; }
