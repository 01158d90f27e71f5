# Sourced by the scripts: installs what tests need where that is possible, and leaves two lists of
# packages: `missing` of those that must be there, `without` of those that tests can do without.

# What tests need, each as "what shows that it is there : Debian package".
required=(
  "command -v cc : gcc libc6-dev"
  "command -v bash : bash"
  "command -v python3 : python3"
  "python3 -c 'import ensurepip, venv' : python3-venv"
  "command -v valgrind : valgrind"
  "command -v openssl : openssl"
)
optional=(
  "command -v tmux : tmux"
  "command -v zsh : zsh"
  "command -v fish : fish"
  "command -v mandoc : mandoc"
  "command -v busybox && command -v mksh && command -v ksh93 : busybox mksh ksh93u+m"
  "command -v vim && command -v nano && command -v ed : vim nano ed"
  "command -v less && command -v man && command -v git : less man-db git"
  "command -v bc && command -v dc && command -v lua && command -v sqlite3 : bc dc lua5.4 sqlite3"
  "bwrap --unshare-user --unshare-pid --bind / / --proc /proc true : bubblewrap"
  "test -x /usr/sbin/sshd && command -v ssh-keygen : openssh-server openssh-client"
  "command -v chromium : chromium"
  "command -v gdb && command -v watch && command -v whiptail : gdb procps whiptail"
)
# What is used where it is there and not worth changing a machine for.
welcome=(
  "setpriv --reuid=70001 --regid=70001 --clear-groups true : the right to be other users, for sockets of others"
  "systemd-analyze --version : systemd"
  "unshare --map-root-user --mount mount -t tmpfs none /mnt : the right to mount, to try a full disk"
)

is_there() { bash -c "${1%% : *}" >/dev/null 2>&1; }

as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo -n); fi

apt_updated=no
# Installs the packages of one need; says nothing when it cannot, since the lists below do.
install() {
  command -v apt-get >/dev/null || return 0
  [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null || return 0
  if [ $apt_updated = no ]; then
    "${as_root[@]}" apt-get update -qq >/dev/null 2>&1 || true
    apt_updated=yes
  fi
  # shellcheck disable=SC2086 # one need may be several packages
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends $1 >/dev/null 2>&1 || true
}

missing=()
without=()
for need in "${required[@]}"; do
  is_there "$need" || install "${need##* : }"
  is_there "$need" || missing+=("${need##* : }")
done
for need in "${optional[@]}"; do
  is_there "$need" || install "${need##* : }"
done
for need in "${optional[@]}" "${welcome[@]}"; do
  is_there "$need" || without+=("${need##* : }")
done
