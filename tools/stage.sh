# Sourced by the other scripts. A stage is a command that says one line: its output goes to a log
# that is shown when the command fails.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
logs=$root/.cache/logs
jobs=$(nproc)
mkdir -p "$logs"

# Python keeps what it compiles, in this folder alone: each `import torch` would take some seconds
# more. Images often forbid it for the sake of their size.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$root/.cache/pycache

# One line per finished stage: name, result, seconds, and seconds of all processors.
stage_names=() stage_results=() stage_seconds=() stage_cpu=()

# stage NAME COMMAND…: the log is $logs/NAME.log with spaces as dashes. Returns the command's status.
stage() {
  local name=$1 log=$logs/${1// /-}.log begin=$SECONDS status=0 cpu TIMEFORMAT='%U %S'
  shift
  cpu=$({ time "$@" >"$log" 2>&1; } 2>&1) || status=$?
  cpu=$(awk '{printf "%.0f", $1 + $2}' <<<"$cpu")
  local seconds=$((SECONDS - begin)) result=ok
  [ "$status" -eq 0 ] || result=FAILED
  # At once, for other stages may run beside it.
  printf '%-28s%-8s%4d s  cpu%5d s\n' "$name" "$result" "$seconds" "$cpu"
  stage_names+=("$name") stage_results+=("$result") stage_seconds+=("$seconds") stage_cpu+=("$cpu")
  if [ "$status" -ne 0 ]; then
    printf -- '---- the last 60 lines of %s\n' "${log#"$root"/}"
    tail -n 60 "$log"
    printf -- '----\n'
  fi
  return "$status"
}

# configure_and_build PRESET
configure_and_build() { cmake --preset "$1" && cmake --build --preset "$1" -j "$jobs"; }

# Names of our files that match the patterns, one per line; what was built or installed is not ours.
our_files() {
  local pattern
  for pattern in "$@"; do
    find gossamer bindings python examples experiments bench tests tools -name "$pattern" -type f
  done | sort
}
