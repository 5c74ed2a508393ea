# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Functions that the tests of mounted filesystems share: a directory of their own, images, mounts, results in TAP, and
# a cleanup that runs however a test ends. Source it:
#
#     . "$(dirname "$0")/lib.sh"
#     says_hello() { echo hello >"$mnt/a" && [[ $(<"$mnt/a") == hello ]]; }
#     new_image && start
#     it "says hello" says_hello
#     finish
#
# A check is a function that fails, and says why on stderr, if the claim does not hold. The environment names the programs:
# ZFUSE, MKFS_ZFUSE, ZFUSECTL, FSCK_ZFUSE, MOUNT_ZFUSE, UMOUNT_ZFUSE (tests/mount/meson.build). It may say more:
#
#     ZFUSE_TEST_DISK      a zoned disk to use in place of an image; whatever is on it is lost
#     ZFUSE_TEST_OPTIONS   mount options, besides the test's own
#     ZFUSE_TEST_SLOWNESS  how many times slower the machine is than others (1): files are smaller, kills come later
#     ZFUSE_TEST_ONLY      a pattern (bash's =~): checks whose claims do not match are left out
#     ZFUSE_TEST_INSIDE    yes: no other process makes mount namespaces meanwhile
#     ZFUSE_TEST_EVIDENCE  a directory for what a check that failed leaves: the image and the daemon's log
set -uo pipefail
export LC_ALL=C

: "${ZFUSE:?}" "${MKFS_ZFUSE:?}" "${UMOUNT_ZFUSE:?}" "${ZFUSECTL:?}"

# (A TAP test exits with 0 here: meson would take another exit status for an error.)
skip_all() { echo "1..0 # SKIP $*"; exit; }

[[ $(id -u) -eq 0 ]] || skip_all "mounting needs root"
[[ -c /dev/fuse ]] || skip_all "there is no /dev/fuse"

# The test runs in a mount namespace of its own. Otherwise a namespace that another process makes meanwhile would hold copies of
# our mounts, and an unmount here would not end the mount.
if [[ ${ZFUSE_TEST_INSIDE:-} != yes ]]; then
	export ZFUSE_TEST_INSIDE=yes
	exec unshare -m --propagation private "$0" "$@"
fi

top=$(mktemp -d "${TMPDIR:-/tmp}/zfuse-test.XXXXXX") || exit 1
img=${ZFUSE_TEST_DISK:-$top/disk.img}
mnt=$top/mnt
mkdir "$mnt" && chmod 755 "$top"
log=$top/log # of the daemon, while it runs in the foreground
mount_options=${ZFUSE_TEST_OPTIONS:-}
tests=0
failures=0
daemons=() # their process ids; ours to kill

# The sanitizers' reports about a daemon in the background would otherwise go to /dev/null.
for sanitizer in ASAN UBSAN TSAN; do
	declare -x "${sanitizer}_OPTIONS=$(printenv ${sanitizer}_OPTIONS):log_path=$top/sanitizer"
done

# ---- results ----

# After a check that failed, the next check starts without mounts. Scripts whose checks share a mount have their own recover().
recover() { clear_mounts; }

# Keeps the files of a check that failed, before they are removed; only for the first three failures.
keep_evidence() {
	local to=${ZFUSE_TEST_EVIDENCE:-}/check-$tests file
	[[ -n ${ZFUSE_TEST_EVIDENCE:-} && $failures -le 3 ]] && mkdir -p "$to" || return 0
	for file in "$top"/*; do
		[[ ! -f $file || $file -ef $img ]] || cp --sparse=always "$file" "$to"
	done
	[[ ! -f $img ]] || cp --sparse=always "$img" "$to"
}

# it CLAIM CHECK [ARGUMENT...]
it() {
	local claim=$1 status
	shift
	[[ $claim =~ ${ZFUSE_TEST_ONLY:-} ]] || return 0
	tests=$((tests + 1))
	# The check runs in this shell, so that it may note what it started.
	"$@" >"$top/out" 2>&1
	status=$?
	if [[ $status -eq 0 ]]; then
		echo "ok $tests - $claim"
	elif [[ $status -eq 77 ]]; then
		echo "ok $tests - $claim # SKIP $(tail -n1 "$top/out")"
	else
		failures=$((failures + 1))
		echo "not ok $tests - $claim"
		sed 's/^/# /' "$top/out"
		keep_evidence
		recover
	fi
	return 0
}

finish() {
	clear_mounts
	it "no sanitizer complained" sanitizers_are_silent
	echo "1..$tests"
	[[ $failures -eq 0 ]]
	exit
}

sanitizers_are_silent() { ! grep . "$top"/sanitizer.* /dev/null; }

# Ends the whole script: no later check would mean anything.
bail() {
	echo "Bail out! $*"
	exit 1
}

# same WHAT EXPECTED ACTUAL
same() {
	[[ $2 == "$3" ]] || { echo "$1: expected '$2', not '$3'" >&2; return 1; }
}

# contains TEXT PART
contains() {
	[[ $1 == *"$2"* ]] || { echo "'$2' is not in: $1" >&2; return 1; }
}

# within SECONDS COMMAND...: try until it works.
within() {
	local until=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		((SECONDS < until)) || { echo "not in time: $*" >&2; return 1; }
		sleep 0.05
	done
}

# eventually COMMAND...: the same; its limit only ends a test that hangs. A busy disk may stall for a minute.
eventually() { within 120 "$@"; }

# ---- images and mounts ----

# new_image [GEOMETRY]: makes $img anew. A disk keeps its own geometry.
new_image() {
	local how=(--image "${1:-size=1G,zone-size=16M}")
	[[ -z ${ZFUSE_TEST_DISK:-} ]] || how=(--force)
	[[ -n ${ZFUSE_TEST_DISK:-} ]] || rm -f "$img"
	"$MKFS_ZFUSE" "${how[@]}" "$img" >"$top/mkfs.out" 2>&1 ||
		{ cat "$top/mkfs.out" >&2; return 1; }
}

# start [OPTION]...: mounts $img at $mnt in the background, with $mount_options.
start() {
	local options
	options=$(IFS=,; echo "$*")
	options=${mount_options}${mount_options:+${options:+,}}$options
	"$ZFUSE" "$img" "$mnt" ${options:+-o "$options"} || return
	note_daemon "$mnt"
}

# start_foreground [OPTION]...: the same, in the foreground, so that its log and exit status can be seen.
start_foreground() {
	local options
	options=$(IFS=,; echo "$*")
	options=${mount_options}${mount_options:+${options:+,}}$options
	"$ZFUSE" "$img" "$mnt" -f ${options:+-o "$options"} >"$log" 2>&1 &
	pid=$!
	daemons+=("$pid")
	eventually answers "$mnt"
}

# Its control socket is the last thing that a mount sets up.
answers() { mountpoint -q "$1" && ask "$1" daemon; }

# note_daemon MOUNTPOINT: sets pid. It does not use ask(), because every mount needs it and Python starts slowly on a slow machine.
note_daemon() {
	pid=$("$ZFUSECTL" status --format json "$1" | sed -n 's/.*"pid":\([0-9]*\).*/\1/p')
	[[ -n $pid ]] && daemons+=("$pid")
}

# ask PATH COMMAND [ARGS]: sends a raw request to the daemon whose mount contains PATH, or whose socket PATH is, and prints the
# answer.
ask() {
	python3 - "$@" <<'PYTHON'
import json, os, socket, stat, sys
st = os.stat(sys.argv[1])
of_mount = "/run/zfuse/%d:%d.sock" % (os.major(st.st_dev), os.minor(st.st_dev))
s = socket.socket(socket.AF_UNIX)
s.settimeout(30)
s.connect(sys.argv[1] if stat.S_ISSOCK(st.st_mode) else of_mount)
request = {"command": sys.argv[2]}
if len(sys.argv) > 3:
    request["args"] = json.loads(sys.argv[3])
s.sendall(json.dumps(request).encode() + b"\n")
answer = b""
while not answer.endswith(b"\n"):
    part = s.recv(65536)
    if not part:
        sys.exit("the connection ended without an answer")
    answer += part
print(answer.decode(), end="")
PYTHON
}

# jq_get KEY: prints the member KEY of the result in an answer on stdin.
jq_get() { python3 -c 'import json, sys; print(json.load(sys.stdin)["result"][sys.argv[1]])' "$1"; }

# Does the kernel tell fuseblk mounts of sync(2)? If so, root's mount of an image has the type fuseblk (decision 0031).
kernel_sends_syncfs() { sort -C -V <<<$'6.18\n'"$(uname -r)"; }
type_of_images() { if kernel_sends_syncfs; then echo fuseblk.zfuse; else echo fuse.zfuse; fi; }

# stop: unmounts $mnt as umount(8) would, and says whether the last commit worked.
stop() { "$UMOUNT_ZFUSE" "$mnt"; }

# is_gone PID: the process has ended with all its threads, reaped or not.
is_gone() { [[ ! -e /proc/$1 ]] || { grep -q '^State:[[:space:]]*Z' "/proc/$1/status" && has_one_thread "$1"; }; }
has_one_thread() { local threads=("/proc/$1/task/"*); [[ ${#threads[@]} -eq 1 ]]; }

# ended PID: waits until the process has ended. A killed process may have to wait for a disk that stalls; if the wait fails, the
# kernel stacks of its threads are shown.
ended() {
	eventually is_gone "$1" && return
	grep -H . "/proc/$1"/task/*/{comm,wchan,stack} >&2 2>/dev/null
	return 1
}

remount() { stop && start "$@"; }

# check_image: everything on the unmounted device fits together.
check_image() {
	[[ -n ${FSCK_ZFUSE:-} ]] || return 0
	"$FSCK_ZFUSE" -n "$img" >"$top/fsck.out" 2>&1 || { cat "$top/fsck.out" >&2; return 1; }
}

# use_transport io_uring|dev-fuse: for the mounts that follow; skips the script where the kernel has none.
use_transport() {
	local param=/sys/module/fuse/parameters/enable_uring
	case $1 in
	dev-fuse) mount_options+=${mount_options:+,}io_uring=off ;;
	io_uring)
		[[ -e $param ]] || skip_all "this kernel has no FUSE over io_uring"
		[[ $(<"$param") == Y ]] || echo Y 2>/dev/null >"$param" ||
			skip_all "FUSE over io_uring cannot be turned on"
		mount_options+=${mount_options:+,}io_uring=on
		;;
	esac
}

# ---- the end ----

# detach [TYPE]: mounts below $top, innermost first; lazily, even if a daemon hangs.
detach() {
	local m
	while read -r m; do
		umount -i -l "$m" 2>/dev/null
	done < <(awk -v top="$top/" -v type="${1:-.}" 'index($5, top) == 1 && $0 ~ type { print $5 }' \
		/proc/self/mountinfo | tac)
}

clear_mounts() {
	local p
	cd /
	exec 8>&- 9>&-
	detach ' - fuse'
	for p in ${daemons[@]+"${daemons[@]}"}; do
		# Process numbers are reused: a process is ours only if it still runs the daemon.
		[[ $(readlink "/proc/$p/exe" 2>/dev/null) == "$(realpath "$ZFUSE")" ]] || continue
		eventually is_gone "$p" 2>/dev/null || kill -KILL "$p" 2>/dev/null
	done
	daemons=()
}

clean_up() {
	clear_mounts
	detach
	[[ -z ${loop:-} ]] || losetup -d "$loop" 2>/dev/null
	rm -rf "$top"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
