# What the scripts share: where the project is, how they talk, how they wait.
# Sourced by the others, never run by itself.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

# Tools that script/setup installs: cargo's own folder, and npm's for wasm-opt.
TOOLS=$ROOT/.tools
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$TOOLS/node_modules/.bin:$PATH"

# Where cargo puts what it builds, for all of the scripts.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$ROOT/target}

# Messages go to standard error, so that standard output stays for results.
say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# The version of a workspace dependency as Cargo.lock has it: locked_version wasm-bindgen
locked_version() {
  awk -v name="\"$1\"" '$1 == "name" { hit = ($3 == name) } hit && $1 == "version" { gsub(/"/, "", $3); print $3; exit }' Cargo.lock
}

# Polls a command until it succeeds: wait_for <seconds> <command…>
wait_for() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

# Whether something listens on a TCP port: port_taken [<host>] <port>
port_taken() {
  local host=127.0.0.1
  if (($# > 1)); then host=$1 && shift; fi
  (exec 3<>"/dev/tcp/$host/$1") 2>/dev/null
}

# Whether a path of a local server answers 200: http_ok <host> <port> <path>
http_ok() (
  exec 2>/dev/null
  exec 3<>"/dev/tcp/$1/$2" || exit 1
  printf 'GET %s HTTP/1.0\r\nHost: %s:%s\r\n\r\n' "$3" "$1" "$2" >&3
  IFS= read -r -t 5 status <&3
  [[ $status == HTTP/*" 200"* ]]
)

# Starts the private services and exports DATABASE_URL and REDIS_URL; services_down
# stops those that were not running before, and is safe to call at any moment.
SERVICES_BEFORE=
services_up() {
  local line
  SERVICES_BEFORE=were:$(script/services running | tr '\n' ' ')
  script/services start >&2
  while IFS= read -r line; do export "${line?}"; done < <(script/services env)
  [ -n "${DATABASE_URL:-}" ] && [ -n "${REDIS_URL:-}" ]
}
services_down() {
  [ -n "$SERVICES_BEFORE" ] || return 0
  local name
  for name in redis postgres; do
    [[ $SERVICES_BEFORE == *"$name"* ]] || script/services stop "$name" >&2
  done
}

# Says which step begins and, when the next one does or `steps_end` is called, how
# long it took. STEPS is set by the caller to the number of steps.
STEP=0
STEP_TITLE=
step() {
  step_end
  STEP=$((STEP + 1)) STEP_TITLE=$1 STEP_BEGAN=$SECONDS
  say "[$STEP/$STEPS] $1"
}
step_end() {
  [ -z "$STEP_TITLE" ] || say "      done in $((SECONDS - STEP_BEGAN)) s"
  STEP_TITLE=
}

# A browser bundle needs the wasm32 target of the compiler. Where rustup could not
# bring it, script/setup has installed Debian's compiler with its sources, which then
# builds the target's standard library too; it has a target folder of its own, as two
# compilers would undo each other's work.
wasm_target_installed() {
  [ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown/lib" ]
}
wasm_debian_installed() { have wasm-ld-22 && dpkg -s rustc-web cargo-web rust-web-src >/dev/null 2>&1; }
wasm_compiler() {
  ! wasm_target_installed || return 0
  export PATH="/usr/bin:$PATH" CARGO_TARGET_DIR=$ROOT/target/wasm-debian RUSTC_BOOTSTRAP=1
  export CARGO_UNSTABLE_BUILD_STD=std,panic_abort CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld-22
}
