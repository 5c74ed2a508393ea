# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Functions that the tests in a virtual machine share, besides those of tests/mount/lib.sh. The tests run as root inside
# the machine (scripts/vm). Everything that they need must be there, so a check that is skipped counts as failed.
[[ -n ${VM_BOOT:-} && -e /run/vm/command ]] || { echo "Bail out! run it with scripts/vm: it resets the machine" && exit 1; }
export ZFUSE_TEST_INSIDE=yes
. "$(dirname "${BASH_SOURCE[0]}")/../mount/lib.sh"
mount_suite=$(dirname "${BASH_SOURCE[0]}")/../mount
export ZFUSE_TEST_SLOWNESS=8
# Output and errors leave the machine over the same console, so errors are turned into comments.
exec 2> >(sed -u 's/^/# /')

transport=io_uring
[[ -e /sys/module/fuse/parameters/enable_uring ]] || transport=dev-fuse

# use_disk NAME[=APPEND]: from now on checks here and in suites use the disk that scripts/vm calls NAME.
use_disk() {
	local variable=ZF_${1%%=*}
	variable=${variable//-/_}
	variable=${variable^^}
	img=${!variable:?}
	[[ -b $img ]] || bail "$img is no disk"
	mount_options=
	[[ $1 != *=* ]] || mount_options=append=${1#*=}
	export ZFUSE_TEST_DISK=$img ZFUSE_TEST_OPTIONS=$mount_options
	use_transport "$transport"
}

# suite NAME SCRIPT [ARGUMENT...]: runs a script of tests/mount. Its checks become checks of this test, as "NAME:
# CLAIM".
suite() {
	local name=$1 script=$2 line ended=0
	shift 2
	while IFS= read -r line; do
		case $line in
		"ok "* | "not ok "*) adopt "$name" "$line" ;;
		1..0*) echo "# $line" ;;
		1..*) ended=1 ;;
		"Bail out!"*) echo "# $line" ;;
		*) echo "# $line" ;;
		esac
	done < <("$mount_suite/$script" "$@" 2>&1)
	it "$name: $script runs to its end" test $ended -eq 1
}

# adopt NAME LINE: prints a script's line of result as a result of this test.
adopt() {
	local result
	tests=$((tests + 1))
	[[ $2 =~ ^(not )?ok\ [0-9]+\ -\ ([^#]*)(# SKIP.*)?$ ]] || bail "no result: $2"
	result=${BASH_REMATCH[1]}ok
	[[ -z ${BASH_REMATCH[3]} ]] || result="not ok"
	[[ $result == ok ]] || failures=$((failures + 1))
	echo "$result $tests - $1: ${BASH_REMATCH[2]}"
	[[ -z ${BASH_REMATCH[3]} ]] || echo "# skipped: ${BASH_REMATCH[3]}"
}
