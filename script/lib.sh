# What the scripts share: where the project is, how they talk, how they wait.
# Sourced by the others, never run by itself.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

# Tools that script/setup installs: cargo's own folder, and npm's for wasm-opt.
TOOLS=$ROOT/.tools
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$TOOLS/node_modules/.bin:$PATH"

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

# Whether something listens on a TCP port of this machine: port_taken [host] <port>
port_taken() {
  local port=${2:-$1} host=127.0.0.1
  (($# > 1)) && host=$1
  (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null
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
wasm_debian_installed() { [ -x /usr/bin/cargo ] && [ -d /usr/src/rustc-web ] || dpkg -s rust-web-src >/dev/null 2>&1 && have wasm-ld-22; }
wasm_compiler() {
  ! wasm_target_installed || return 0
  export PATH="/usr/bin:$PATH" CARGO_TARGET_DIR=$ROOT/target/wasm-debian RUSTC_BOOTSTRAP=1
  export CARGO_UNSTABLE_BUILD_STD=std,panic_abort CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld-22
}
