#!/bin/bash
# Does what a stranger does, in a bare system: unpacks a minimal Debian into a folder, installs git there, clones this
# repository's committed state, and runs the README's two commands.
usage() {
  cat <<'END'
Usage: scripts/bare-check.sh [debian12|debian13|all] [quickstart|test|fast|all] [--keep]
  quickstart  scripts/quickstart.sh
  test        scripts/test.sh
  fast        scripts/test.sh fast
  all         quickstart and test (the default, on all systems)
  --keep      leave the folder of the last system, to look around with chroot
Needs root, debootstrap, 8 GB under /var/tmp (MEGALITH_BARE_FOLDER: elsewhere). The minimal systems are kept there
for the next time; delete the folder to make them anew. Uses the host's Debian mirror, proxies and certificates.
END
}
set -euo pipefail
source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

systems=()
tasks=()
keep=no
for argument in "$@"; do
  case $argument in
    debian12 | debian13) systems+=("$argument") ;;
    quickstart | test | fast) tasks+=("$argument") ;;
    all) ;;
    --keep) keep=yes ;;
    -h | --help) usage; exit 0 ;;
    *) echo "bare-check.sh: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done
[ ${#systems[@]} -gt 0 ] || systems=(debian12 debian13)
[ ${#tasks[@]} -gt 0 ] || tasks=(quickstart test)

[ "$(id -u)" -eq 0 ] || { echo "bare-check.sh: run as root (it mounts and uses chroot)" >&2; exit 1; }
for tool in debootstrap git tar; do
  command -v $tool > /dev/null || {
    echo "bare-check.sh: $tool is missing: apt-get install --no-install-recommends $tool" >&2
    exit 1
  }
done
[ -z "$(git -C "$source_folder" status --porcelain)" ] ||
  echo "bare-check.sh: uncommitted changes are not part of the check" >&2

folder=${MEGALITH_BARE_FOLDER:-/var/tmp/megalith-bare}
root=$folder/root
mkdir -p "$folder"
exec 9> "$folder/lock"
flock --nonblock 9 || { echo "bare-check.sh: another one is running in $folder" >&2; exit 1; }

unmount() {
  local place
  for place in dev/shm dev/pts dev sys proc; do
    if mountpoint --quiet "$root/$place" 2> /dev/null; then
      umount "$root/$place" 2> /dev/null || umount --lazy "$root/$place" || true
    fi
  done
}
remove_root() {
  unmount
  for place in dev sys proc; do
    ! mountpoint --quiet "$root/$place" 2> /dev/null || { echo "bare-check.sh: $root/$place is still mounted" >&2; exit 1; }
  done
  rm -rf --one-file-system "$root"
}
clean_up() {
  if [ $keep = yes ]; then
    unmount
    echo "Left in $root"
  else
    remove_root
  fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

make_base() {  # SUITE: a minimal system, kept as a tar file
  local mirror
  [ ! -e "$folder/$1.tar" ] || return 0
  echo "Making a minimal $1 (once; about 2 minutes)"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 2> /dev/null | grep -E '/debian/?$' | head -n 1 || true)
  remove_root
  debootstrap --variant=minbase "$1" "$root" ${mirror:+"$mirror"} > "$folder/debootstrap.log" 2>&1 || {
    tail -n 20 "$folder/debootstrap.log" >&2
    exit 1
  }
  rm -rf "$root"/var/cache/apt/archives/*.deb
  tar -C "$root" -cf "$folder/$1.part" . && mv "$folder/$1.part" "$folder/$1.tar"
}

enter() {  # COMMAND: in the bare system, with nothing of this one's environment but the means to reach the network
  local name passed=()
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL PIP_CERT SSL_CERT_FILE; do
    [ -z "${!name:-}" ] || passed+=("$name=${!name}")
  done
  env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    "${passed[@]}" chroot "$root" /bin/bash -c "$1" < /dev/null
}

prepare() {  # SUITE
  local certificates
  remove_root
  mkdir -p "$root"
  tar -C "$root" -xf "$folder/$1.tar"
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  apt-config dump | grep -E '^Acquire::(http|https|Check|Retries)' > "$root/etc/apt/apt.conf.d/99host" || true
  for certificates in "${PIP_CERT:-}" "${SSL_CERT_FILE:-}"; do
    if [ -f "$certificates" ]; then
      mkdir -p "$root$(dirname "$certificates")"
      cp -L "$certificates" "$root$certificates"
    fi
  done
  mount -t proc proc "$root/proc"
  mount --rbind --make-rslave /sys "$root/sys" 2> /dev/null || mount --bind /sys "$root/sys"
  mount --bind /dev "$root/dev"
  mkdir -p "$root/dev/shm" && mount -t tmpfs tmpfs "$root/dev/shm" 2> /dev/null || true
  enter "apt-get -q update && apt-get -qy install --no-install-recommends git" > "$folder/git.log" 2>&1 || {
    tail -n 20 "$folder/git.log" >&2
    exit 1
  }
  git -C "$source_folder" bundle create -q "$folder/megalith.bundle" HEAD
  mv "$folder/megalith.bundle" "$root/root/"
  enter "cd && git -c init.defaultBranch=main -c advice.detachedHead=false clone -q megalith.bundle megalith && rm megalith.bundle"
}

failed=0
report=()
for system in "${systems[@]}"; do
  case $system in
    debian12) suite=bookworm ;;
    debian13) suite=trixie ;;
  esac
  make_base $suite
  for task in "${tasks[@]}"; do
    prepare $suite
    case $task in
      quickstart) command="scripts/quickstart.sh" ;;
      test) command="scripts/test.sh" ;;
      fast) command="scripts/test.sh fast" ;;
    esac
    printf '\n==== %s: %s ====\n' "$system" "$command"
    started=$SECONDS
    status=0
    enter "cd ~/megalith && $command" || status=$?
    line=$(printf '%s: %s: status %d after %d:%02d' "$system" "$command" $status $(((SECONDS - started) / 60)) \
           $(((SECONDS - started) % 60)))
    report+=("$line")
    [ $status -eq 0 ] || failed=1
    [ $status -eq 0 ] || [ $keep = no ] || break 2
  done
done
printf '\n'
printf '%s\n' "${report[@]}"
exit $failed
