# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Functions that workload scripts share. A script starts with
#
#     . "$(dirname "$0")/lib.sh"
#
# in an empty directory ($PWD) on the filesystem under test. scripts/workloads runs it and compares what it prints with
# NNN.out, which is the same on every filesystem. docs/workloads.md tells more.
#
#     KIND	zfuse, ext4, btrfs or other
#     TMP	a directory on another filesystem, emptied afterwards
#     FULL	a file for output that helps to find out why a script failed
# shellcheck disable=SC2034 # what scripts use
set -u
export LC_ALL=C TZ=UTC
umask 022
KIND=$WORKLOAD_KIND TMP=$WORKLOAD_TMP FULL=$WORKLOAD_FULL
# shellcheck source=tests/workloads/fs.sh
. "$(dirname "${BASH_SOURCE[0]}")/fs.sh"

# not_run REASON: this script makes no sense here.
not_run() {
	echo "$*"
	exit 77
}

fail() { echo "FAILED: $*"; exit 1; }

# ---- filesystems ----

# small_fs SIZE [OPTIONS]: a fresh filesystem of the same kind, mounted at $small. At least 128M, as btrfs needs that.
small_fs() {
	local d
	[[ -n $WORKLOAD_FS ]] || not_run "makes filesystems of its own, which --on does not"
	d=$(mktemp -d "$TMP/small.XXXX") && chmod 755 "$d" || exit 1
	fs_make "$d" "$KIND" "$1" "$(<"$WORKLOAD_FS/options")" && fs_mount "$d" "${2:-}" ||
		fail "cannot make a filesystem of $1"
	small=$d/mnt
}

# remount [OPTIONS]: unmounts the filesystem that $PWD is on, and mounts it again. It is checked after the script.
remount() {
	local here=$PWD d
	[[ -n $WORKLOAD_FS ]] || not_run "remounts, which --on does not"
	d=$(own_fs "$here") || fail "$here is not on a filesystem under test"
	cd "$TMP" || exit 1
	: >"$TMP/remounted"
	fs_unmount "$d" && fs_mount "$d" "${1:-}" || fail "cannot remount"
	cd "$here" || fail "$here is gone after the remount"
}

# own_fs PATH: the directory of fs.sh for the filesystem that PATH is on.
own_fs() {
	local d
	for d in "$WORKLOAD_FS" "$TMP"/small.*; do
		[[ $1/ != "$d/mnt/"* ]] || { echo "$d"; return; }
	done
	return 1
}

# ---- users ----

# as_user UID[:GID[,GROUP]...] COMMAND...: without GID, the group has the number UID.
as_user() {
	local uid=${1%%:*} gid=${1#*:} groups=(--clear-groups)
	shift
	[[ $gid != *,* ]] || groups=(--groups "${gid#*,}")
	setpriv --reuid "$uid" --regid "${gid%%,*}" "${groups[@]}" "$@"
}

# ---- what changed ----

# changes "PATH..." COMMAND...: runs COMMAND, and says which times of each path it changed. A path that it renames is OLD=NEW.
changes() {
	local paths=$1 spec before=() i=0
	shift
	for spec in $paths; do
		before+=("$(sys -q lstat "${spec%%=*}" atime,mtime,ctime,btime)")
	done
	sleep 0.02 # Clocks advance in steps of up to 10 ms.
	"$@"
	for spec in $paths; do
		echo "  ${spec#*=}:$(differences "${before[i]}" "$(sys -q lstat "${spec#*=}" atime,mtime,ctime,btime)")"
		i=$((i + 1))
	done
}

differences() {
	local name before after i=0 text=
	read -ra before <<<"$1"
	read -ra after <<<"$2"
	[[ ${#after[@]} -eq 4 ]] || { echo " $2"; return; }
	for name in atime mtime ctime btime; do
		[[ ${before[i]:-} == "${after[i]}" ]] || text+=" $name"
		i=$((i + 1))
	done
	echo "${text:- nothing}"
}

# ---- data ----

# same FILE...: says whether the first is like each of the others.
same() {
	local first=$1 f
	shift
	for f in "$@"; do
		cmp "$first" "$f" && echo "$f is like $first"
	done
}

# ---- output ----

# Paths that differ from run to run.
filter_paths() { sed -e "s#$TMP#TMP#g" -e "s#$PWD#DIR#g"; }

# Every number.
filter_numbers() { sed -E 's/[0-9]+/N/g'; }

# between WHAT LOW HIGH VALUE: says whether VALUE is in this range, to judge a value that differs among filesystems.
between() {
	if (($4 >= $2 && $4 <= $3)); then
		echo "$1: as expected"
	else
		echo "$1: $4, not in $2..$3"
	fi
}

# eventually COMMAND...: tries until it works. The limit only ends a test that hangs: a busy disk may stall for a minute.
eventually() {
	local until=$((SECONDS + 120))
	until "$@"; do
		((SECONDS < until)) || return 1
		sleep 0.05
	done
}
