# Sourced by the scripts: a home and a cargo, also where HOME is unset, empty or somewhere new.

account_home=$(getent passwd "$(id -u)" | cut -d: -f6)
if [ ! -d "${HOME:-}" ]; then export HOME=$account_home; fi
if ! cargo --version >/dev/null 2>&1; then
  export CARGO_HOME=${CARGO_HOME:-$account_home/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$account_home/.rustup}
  export PATH=$CARGO_HOME/bin:$PATH
fi
export CARGO_TERM_COLOR=never
