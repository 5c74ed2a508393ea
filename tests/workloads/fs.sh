# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Filesystems under test: scripts/workloads and lib.sh make, mount, unmount and check them with this.
#
# A filesystem lives in a directory of its own, D: its image (D/img), mountpoint (D/mnt), kind, mount options, and for zfuse
# the daemon's log (D/log) and process id (D/pid). The environment names the programs of zfuse.

# fs_make D zfuse|ext4|btrfs SIZE [OPTIONS]: an image of that size, not mounted.
fs_make() {
	local d=$1 kind=$2 bytes
	bytes=$(numfmt --from=iec "$3") || return
	mkdir -p "$d/mnt" && echo "$kind" >"$d/kind" && echo "${4:-}" >"$d/options" && : >"$d/log" || return
	rm -f "$d/img"
	case $kind in
	zfuse) "$MKFS_ZFUSE" -q --image "size=$bytes,zone-size=$(fs_zone_size "$bytes")" "$d/img" ;;
	ext4) truncate -s "$bytes" "$d/img" && mkfs.ext4 -q -F -i 8192 "$d/img" ;;
	btrfs) truncate -s "$bytes" "$d/img" && mkfs.btrfs -q -f "$d/img" ;;
	esac >"$d/mkfs.out" 2>&1 || { cat "$d/mkfs.out" >&2; return 1; }
}

# A power of two, so that there are at least 64 zones.
fs_zone_size() {
	local zone=$((1 << 20))
	while ((zone * 2 * 64 <= $1 && zone < 16 << 20)); do
		((zone *= 2))
	done
	echo "$zone"
}

# fs_mount D [OPTIONS]: mounts with the options of D/options and these.
fs_mount() {
	local d=$1 options
	options=$(<"$d/options")
	options+=${options:+${2:+,}}${2:-}
	case $(<"$d/kind") in
	zfuse) fs_start_daemon "$d" "$options" ;;
	*) mount -o "loop${options:+,$options}" "$d/img" "$d/mnt" ;;
	esac
}

# The daemon has a session of its own, so that a signal that ends a script does not end the daemon.
fs_start_daemon() {
	local d=$1 options=$2 until=$((SECONDS + 120)) pid
	setsid "$ZFUSE" "$d/img" "$d/mnt" -f ${options:+-o "$options"} </dev/null >>"$d/log" 2>&1 &
	pid=$!
	disown "$pid"
	echo "$pid" >"$d/pid"
	# The control socket is the last thing that a mount sets up.
	until [[ -S /run/zfuse/$(mountpoint -d "$d/mnt" 2>/dev/null).sock ]]; do
		fs_runs "$pid" && ((SECONDS < until)) || { tail -n 5 "$d/log" >&2; return 1; }
		sleep 0.01
	done
}

# fs_runs PID: that process is there and is no zombie.
fs_runs() { [[ -e /proc/$1 ]] && ! grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"; }

# fs_unmount D: as umount(8) does it, so that everything is on the image afterwards.
fs_unmount() {
	local d=$1 pid until=$((SECONDS + 120))
	[[ $(<"$d/kind") == zfuse ]] || { umount "$d/mnt"; return; }
	pid=$(<"$d/pid")
	timeout 120 "$UMOUNT_ZFUSE" "$d/mnt" || return
	while fs_runs "$pid"; do
		((SECONDS < until)) || { echo "the daemon still runs after the unmount" >&2; return 1; }
		sleep 0.01
	done
}

# fs_check D: everything on the unmounted image fits together; says what does not.
fs_check() {
	local d=$1
	case $(<"$d/kind") in
	zfuse) "$FSCK_ZFUSE" -n "$d/img" ;;
	ext4) e2fsck -f -n "$d/img" ;;
	btrfs) btrfs check --readonly "$d/img" ;;
	esac >"$d/check.out" 2>&1 || { tail -n 30 "$d/check.out" >&2; return 1; }
}

# fs_complaints D: prints the errors that the daemon's log has got since the last call.
fs_complaints() {
	local d=$1 seen=0
	[[ ! -e $d/log_seen ]] || seen=$(<"$d/log_seen")
	tail -n "+$((seen + 1))" "$d/log" |
		grep -a -m 20 -E '^zfuse: error:|Sanitizer|runtime error:|Assertion' | sed 's/^/the log says: /'
	wc -l <"$d/log" >"$d/log_seen"
}

# fs_ail D: what is wrong with the mounted filesystem, if anything.
fs_ail() {
	local d=$1
	[[ $(<"$d/kind") != zfuse ]] || fs_runs "$(<"$d/pid")" || echo "the daemon has died"
	fs_complaints "$d"
	timeout 120 touch "$d/mnt/.probe" 2>&1 && timeout 120 rm "$d/mnt/.probe" 2>&1
}

# fs_destroy D: unmounts and removes the filesystem, whatever state it is in.
fs_destroy() {
	local d=$1 pid=
	[[ ! -e $d/pid ]] || pid=$(<"$d/pid")
	while mountpoint -q "$d/mnt" 2>/dev/null || [[ $(stat "$d/mnt" 2>&1) == *"not connected"* ]]; do
		umount -i -l "$d/mnt" || break
	done
	# Process numbers are reused: the process is ours only if it still runs the daemon.
	if [[ -n $pid && $(readlink "/proc/$pid/exe") == "$(realpath "$ZFUSE")" ]]; then
		timeout 120 tail --pid="$pid" -f /dev/null || kill -KILL "$pid"
	fi
	rm -rf "$d"
}
