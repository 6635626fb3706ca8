# Sourced by .ci/run and dev/test. `stage NAME COMMAND...` runs a stage, and adds its wall, CPU and steal seconds to a table.
# `stage_beside NAME COMMAND...` runs a stage beside the stages that follow, until `stage_join`, which prints its output.
# CPU: user and system time of the processes of the stage. Steal: time that the hypervisor gave to other machines, all CPUs together.
# The outermost script prints the table when it ends, also after a failure.
if [ -z "${STAGES:-}" ]; then
  STAGES=$(mktemp); export STAGES
  trap 'stage_table; rm -f "$STAGES"' EXIT
fi
cpu_ticks() { awk '{ sub(/^.*\) /, ""); print $14 + $15 }' "/proc/$1/stat"; } # pid; its cutime and cstime of proc(5)
steal_ticks() { awk '/^cpu / { print $9 }' /proc/stat; }
stage() { # name command...
  local name=$1 began=$SECONDS shell=$BASHPID cpu steal result=0 row
  shift; cpu=$(cpu_ticks "$shell"); steal=$(steal_ticks)
  echo "== $name"
  "$@" || result=$?
  row=$(awk -v wall=$((SECONDS - began)) -v cpu=$(($(cpu_ticks "$shell") - cpu)) -v steal=$(($(steal_ticks) - steal)) -v hz="$(getconf CLK_TCK)" \
    'BEGIN { printf "%d s, CPU %.0f s, steal %.0f s", wall, cpu / hz, steal / hz }')
  [ "$result" = 0 ] || { echo "== $name FAILED after $row"; row="$row (failed)"; }
  [ "$result" != 0 ] || echo "== $name: $row"
  printf '%s\t%s\n' "$name" "$row" >>"$STAGES"
  if [ "$result" != 0 ]; then
    [ -z "${BESIDE:-}" ] || stage_join
    exit 1
  fi
}
stage_beside() { # name command...
  BESIDE_OUTPUT=$(mktemp)
  ( BESIDE=; stage "$@" ) >"$BESIDE_OUTPUT" 2>&1 &
  BESIDE=$!
}
stage_join() { # ends the script if the stage beside has failed
  local result=0 process=$BESIDE
  BESIDE=
  wait "$process" || result=$?
  cat "$BESIDE_OUTPUT"; rm -f "$BESIDE_OUTPUT"
  [ "$result" = 0 ] || exit 1
}
stage_table() { # wall, CPU and steal seconds of each stage; a stage beside others counts their steal too
  awk -F'\t' -v whole="$SECONDS" '
    function number(text, before) { sub(".*" before, "", text); return text + 0 }
    BEGIN { printf "\n%-34s %8s %8s %8s\n", "stage", "wall s", "CPU s", "steal s" }
    { wall = $2 + 0; cpu = number($2, "CPU "); steal = number($2, "steal "); sums[2] += cpu; sums[3] += steal
      printf "%-34s %8d %8d %8d%s\n", $1, wall, cpu, steal, ($2 ~ /failed/ ? "  FAILED" : "") }
    END { printf "%-34s %8d %8d %8d\n", "whole run", whole, sums[2], sums[3] }' "$STAGES"
}
