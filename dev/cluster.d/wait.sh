# shellcheck shell=bash
# Waits with a limit, and prints the time of a stage.

# A wait without a limit does not show what it waits for: each wait has a limit, and names both.
wait_for() { # seconds what command...
  local limit=$1 what=$2 until
  shift 2; until=$((SECONDS + limit))
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || { echo "dev/cluster: after $limit s, this has not happened: $what" >&2; return 1; }
    sleep 0.1
  done
}

began_us=${EPOCHREALTIME/./}
stage() { # what was reached
  local us=$((${EPOCHREALTIME/./} - began_us))
  printf '[%3d.%d s] %s\n' $((us / 1000000)) $((us / 100000 % 10)) "$*"
}
