# shellcheck shell=bash
# Functions that the scripts share. Sourcing this file changes nothing by itself.

zf_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
zf_name=$(basename "$0")

say() { echo "$zf_name: $*"; }
die() { say "error: $*" >&2; exit 1; }

# as_root COMMAND...: runs COMMAND as root, through sudo if the script does not run as root.
as_root() {
	if [[ $(id -u) -eq 0 ]]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "this needs root, and there is no sudo: $*"
	fi
}

# can_root: whether as_root works without a password prompt.
can_root() { [[ $(id -u) -eq 0 ]] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }

# enable_uring: turns on FUSE over io_uring, which is off by default in Debian's kernels. If that is impossible, prints
# a message and does not fail: zfuse then uses /dev/fuse, and tests of io_uring are skipped.
enable_uring() {
	local param=/sys/module/fuse/parameters/enable_uring
	can_root || { say "not root: FUSE over io_uring stays as it is"; return 0; }
	[[ -e /sys/module/fuse ]] || as_root modprobe fuse 2>/dev/null || true
	if [[ ! -e $param ]]; then
		say "this kernel has no FUSE over io_uring (needs Linux >= 6.14)"
	elif [[ $(<"$param") != Y ]]; then
		echo Y | as_root tee "$param" >/dev/null 2>&1 || say "cannot set $param"
	fi
}

# setup_build NAME: configure build/NAME with scripts/native/NAME.ini, unless that is done already.
setup_build() {
	local dir=$zf_root/build/$1
	[[ -f $dir/build.ninja ]] && return 0
	rm -rf "$dir"
	meson setup "$dir" "$zf_root" --native-file "$zf_root/scripts/native/$1.ini"
}

# install_packages PACKAGE...: updates the package lists only if the first try fails, because they may be absent or old.
install_packages() {
	command -v apt-get >/dev/null || die "no apt-get here: install the equivalents of: $*"
	if ! zf_install "$@" >/dev/null 2>&1; then
		as_root apt-get update -qq
		zf_install "$@"
	fi
}

zf_install() { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" </dev/null; }

# debian_mirror: the Debian archive that this machine's apt uses, whichever format its sources have; or $ZFUSE_DEBIAN_MIRROR.
debian_mirror() {
	local codename uri release
	# shellcheck disable=SC2016 # apt expands these
	local format='$(REPO_URI) $(RELEASE)'
	if [[ -n ${ZFUSE_DEBIAN_MIRROR:-} ]]; then
		echo "$ZFUSE_DEBIAN_MIRROR"
		return
	fi
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	while read -r uri release; do
		case $uri in cdrom:*) continue ;; esac
		case $release in
		"$codename" | stable | testing | unstable | sid) echo "${uri%/}"; return ;;
		esac
	done < <(apt-get indextargets --no-release-info --format "$format" 2>/dev/null)
}

# debian_source TYPE SUITE: the line of apt's sources for that suite of Debian (TYPE: deb, deb-src).
debian_source() {
	local mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	[[ -r $keyring ]] || die "$keyring is missing: apt-get install debian-archive-keyring"
	mirror=$(debian_mirror)
	[[ -n $mirror ]] || die "apt's sources name no Debian archive; set ZFUSE_DEBIAN_MIRROR=URL"
	echo "$1 [signed-by=$keyring] $mirror $2 main"
}

# private_apt DIR TYPE SUITE: makes DIR/apt.conf. With it apt sees only that suite of Debian and keeps
# all its state in DIR: nothing on the system changes, and root is not needed.
private_apt() {
	local dir=$1
	command -v apt-get >/dev/null || die "no apt-get here"
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	debian_source "$2" "$3" >"$dir/sources.list"
	# Hooks of the system's apt configuration would touch the system's caches; proxies and the like stay.
	cat >"$dir/apt.conf" <<-CONF
		#clear APT::Update::Pre-Invoke;
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		Dir::Etc::sourcelist "$dir/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::State::lists "$dir/lists";
		Dir::Cache "$dir/cache";
		Acquire::Languages "none";
		APT::Sandbox::User "$(id -un)";
		APT::Update::Error-Mode "any";
	CONF
	apt-get -c "$dir/apt.conf" -q update >"$dir/log" 2>&1 ||
		{ cat "$dir/log" >&2; die "apt-get update failed for $3 (is the network up?)"; }
}

# make_debian SUITE TARGET OPTION...: makes that Debian with mmdebstrap TARGET OPTION..., from this machine's mirror.
make_debian() {
	local suite=$1 target=$2 source
	shift 2
	command -v mmdebstrap >/dev/null || die "mmdebstrap is missing: apt-get install mmdebstrap"
	source=$(debian_source deb "$suite") || return
	# A file system in memory may have no device nodes.
	as_root env TMPDIR=/var/tmp mmdebstrap --mode=root --aptopt='Acquire::Languages "none"' "$@" "$suite" "$target" "$source"
}

# make_chroot SUITE OPTION...: makes a chroot of that Debian, in which the hooks among mmdebstrap's options work, and removes it.
make_chroot() { make_debian "$1" /dev/null --format=null "${@:2}"; }
