#!/bin/sh
# holder.sh keeps on this node the name of the run whose mode the node has, for all controllers.
#
#   holder.sh look|claim|release NAME SINCE [over]
#
# The file has two lines: the name of the run, and since when. Prints both of another run, or
# nothing. claim writes the file if there is none, and release removes that of NAME. With `over` they
# also replace or remove the file of another run. A node without a disk loses it at each boot. Nodes
# with one root file system have one file each. With PROBE_ROOT=DIR the file is in DIR (tests and
# virtual nodes).
set -eu
umask 022
folder=${PROBE_ROOT:-}/var/lib/proofmark
file=$folder/.holder-$(uname -n)

failed() {
    echo "$file: cannot be written; accepted: root on the node (firmware.remote_shell)" >&2
    exit 1
}

fresh=
trap '[ -z "$fresh" ] || rm -f "$fresh"' EXIT
if [ "$1" = claim ]; then
    [ -d "$folder" ] || mkdir -p "$folder" || failed
    fresh=$folder/.fresh-$(uname -n)-$$
    printf '%s\n' "$2" "$3" >"$fresh" || failed
    # A link is made at once or not at all, also if two controllers try it at the same moment.
    ln "$fresh" "$file" 2>/dev/null || [ -e "$file" ] || failed
fi
[ -e "$file" ] || exit 0
name='' since=''
[ ! -f "$file" ] || { read -r name && read -r since; } <"$file" || :
[ "$name" = "$2" ] || printf '%s since %s\n' "${name:-an unreadable file $file}" "${since:-an unknown time}"
case $1${4:-} in
# The node was free if the name is there: `mv` refuses two links to one file.
claimover) [ "$name" = "$2" ] || mv -f "$fresh" "$file" || failed ;;
releaseover) rm -rf "$file" || failed ;;
release) [ "$name" != "$2" ] || rm "$file" || failed ;;
esac
