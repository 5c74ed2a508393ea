# shellcheck shell=bash
# What the scripts share. Source it; it changes nothing by itself.

zf_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
zf_name=$(basename "$0")

say() { echo "$zf_name: $*"; }
die() { say "error: $*" >&2; exit 1; }

# as_root COMMAND...: run it as root, through sudo if we are not.
as_root() {
	if [[ $(id -u) -eq 0 ]]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "this needs root, and there is no sudo: $*"
	fi
}

# can_root: whether as_root works without asking anybody.
can_root() { [[ $(id -u) -eq 0 ]] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }

# enable_uring: FUSE over io_uring is off by default in Debian's kernels. Tries to turn it on, says so
# when that is impossible, and never fails: zfuse then uses /dev/fuse, tests of io_uring skip.
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
