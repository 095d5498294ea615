"""Emulated `lfs` of Lustre, `beegfs-ctl` of BeeGFS 7 and `beegfs` of BeeGFS 8, as shell scripts.

They accept the options of lfs-setstripe(1), lfs-getstripe(1) and doc.beegfs.io, "Striping", that
the kit uses, refuse all others as the real tools do, and print in their form. The layout of a
folder is kept by its inode. No real file system is striped by them.
"""

from __future__ import annotations

from pathlib import Path

_LAYOUT = r"""
state={state} targets={targets}
key() {{ stat -c %i "$1"; }}
layout_of() {{ # layout_of FILE: prints count, bytes and first target of the nearest folder with one
	folder=$(dirname "$1")
	while [ "$folder" != / ] && [ "$folder" != . ]; do
		[ ! -f "$state/$(key "$folder")" ] || {{ cat "$state/$(key "$folder")"; return; }}
		folder=$(dirname "$folder")
	done
	echo "1 1048576 -1"
}}
"""
_LFS = r"""
fail() {{ echo "lfs $1: $2" >&2; exit 22; }}
verb=${{1-}}; [ $# = 0 ] || shift
case $verb in
setstripe)
	count=1 bytes=1048576 first=-1 path=
	while [ $# -gt 0 ]; do
		case $1 in
		-c|-S|-i) case ${{2-}} in '' | *[!0-9]*) fail setstripe "bad value '${{2-}}'" ;; esac ;;
		-*) fail setstripe "unrecognized option '$1'" ;;
		esac
		case $1 in
		-c) count=$2; shift 2 ;;
		-S) [ $(($2 % 65536)) = 0 ] || fail setstripe "stripe size must be a multiple of 64 KiB"
			bytes=$2; shift 2 ;;
		-i) [ "$2" -lt "$targets" ] || fail setstripe "no OST with index $2"; first=$2; shift 2 ;;
		*) [ -z "$path" ] || fail setstripe "more than one path"; path=$1; shift ;;
		esac
	done
	[ -d "$path" ] || fail setstripe "cannot open '$path': No such file or directory"
	[ "$count" -le "$targets" ] || count=$targets
	{ignored}
	echo "$count $bytes $first" >"$state/$(key "$path")"
	;;
getstripe)
	only=
	case ${{1-}} in -i) only=yes; shift ;; -*) fail getstripe "unrecognized option '$1'" ;; esac
	[ $# = 1 ] && [ -f "$1" ] || fail getstripe "cannot open '${{1-}}': No such file or directory"
	layout=$(layout_of "$1")
	set -- "$1" $layout
	[ "$4" != -1 ] || set -- "$1" "$2" "$3" 0
	[ -z "$only" ] || {{ echo "$4"; exit; }}
	echo "$1"
	echo "lmm_stripe_count:  $2"
	echo "lmm_stripe_size:   $3"
	echo "lmm_pattern:       raid0"
	echo "lmm_layout_gen:    0"
	echo "lmm_stripe_offset: $4"
	printf '\tobdidx\t\t objid\t\t objid\t\t group\n'
	stripe=0
	while [ "$stripe" -lt "$2" ]; do
		printf '\t%6d\t%14d\t%13s\t%14d\n' $((($4 + stripe) % targets)) 34 0x22 0
		stripe=$((stripe + 1))
	done
	echo
	;;
*) fail "$verb" "unknown command" ;;
esac
"""
_BEEGFS = r"""
fail() {{ echo "$1" >&2; exit 1; }}
case "${{1-}} ${{2-}}" in
{set_words}) verb=set; shift {set_shift} ;;
{get_words}) verb=get; shift {get_shift} ;;
*) fail "Unknown mode" ;;
esac
count=1 bytes=524288 path=
for word; do
	case $verb$word in
	set{count}=*) count=${{word#*=}} ;;
	set{bytes}=*) bytes=${{word#*=}} ;;
	get--retro | get--verbose) {retro} ;;
	*--*) fail "Unknown option: $word" ;;
	*) [ -z "$path" ] || fail "Too many arguments"; path=$word ;;
	esac
done
case $count$bytes in *[!0-9]*) fail "Invalid value" ;; esac
if [ "$verb" = set ]; then
	[ -d "$path" ] || fail "Unable to resolve path: $path"
	echo "$count $bytes 0" >"$state/$(key "$path")"
	echo "New chunksize: $bytes"
	exit
fi
[ -f "$path" ] || fail "Unable to resolve path: $path"
set -- $(layout_of "$path")
actual=$1; [ "$actual" -le "$targets" ] || actual=$targets
cat <<END
Entry type: file
EntryID: 0-5D285750-1
Stripe pattern details:
+ Type: RAID0
+ Chunksize: $(($2 / 1024))K
+ Number of storage targets: desired: $1; actual: $actual
+ Storage targets:
  + 1 @ node1 [ID: 1]
END
"""
_TOOLS = {
    "lfs": _LFS,
    "beegfs-ctl": _BEEGFS,
    "beegfs": _BEEGFS,
}
_WORDS = {
    "beegfs-ctl": {
        "set_words": "'--setpattern '*",
        "set_shift": "1",
        "get_words": "'--getentryinfo '*",
        "get_shift": "1",
        "count": "--numtargets",
        "bytes": "--chunksize",
        "retro": 'fail "Unknown option: $word"',
    },
    "beegfs": {
        "set_words": "'entry set'",
        "set_shift": "2",
        "get_words": "'entry info'",
        "get_shift": "2",
        "count": "--num-targets",
        "bytes": "--chunk-size",
        "retro": ":",
    },
}


def write_tool(folder: Path, name: str, targets: int = 8, *, ignores: bool = False) -> Path:
    """Write the emulated tool `name`, and return the folder for the search path.

    Args:
        folder: where it is written, with the layouts that it sets.
        name: ``lfs``, ``beegfs-ctl`` or ``beegfs``.
        targets: the number of storage targets.
        ignores: whether a default of the file system overrides what ``lfs setstripe`` sets.
    """
    path, state = folder / "bin" / name, folder / "layouts"
    path.parent.mkdir(parents=True, exist_ok=True)
    state.mkdir(exist_ok=True)
    ignored = "count=1 bytes=1048576 first=0" if ignores else ":"
    values = {"state": state, "targets": targets, "ignored": ignored, **_WORDS.get(name, {})}
    text = f"#!/bin/sh\n{_LAYOUT}{_TOOLS[name]}".format_map(values)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path.parent
