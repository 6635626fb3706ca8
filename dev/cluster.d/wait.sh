# shellcheck shell=bash
# Waits that end, and what a stage took.

# A wait that has no end hides what it waits for: each has a limit, and says it.
wait_for() { # seconds what command...
  local limit=$1 what=$2 until
  shift 2; until=$((SECONDS + limit))
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || { echo "dev/cluster: after $limit s there is still not: $what" >&2; return 1; }
    sleep 0.1
  done
}

began_us=${EPOCHREALTIME/./}
stage() { # what was reached
  local us=$((${EPOCHREALTIME/./} - began_us))
  printf '[%3d.%d s] %s\n' $((us / 1000000)) $((us / 100000 % 10)) "$*"
}
