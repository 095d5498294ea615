#!/bin/sh
# scratch-mount.sh mounts a file system on this node, or unmounts one that it mounted.
#
#   scratch-mount.sh look    POINT TYPE SOURCE                prints what would be done; changes nothing
#   scratch-mount.sh mount   POINT TYPE SOURCE COMMAND UNDO   both are sh text
#   scratch-mount.sh unmount POINT TYPE SOURCE COMMAND        only what `mount` mounted
#
# TYPE and SOURCE are those of /proc/mounts, or name the same hosts. A mount that is not the accepted one
# is undone by UNDO. A note under /run has what was mounted, and whether the directory was made for it.
# A reset empties /run and the table of mounts. For tests: PROOFMARK_MOUNTS is another table of mounts,
# PROOFMARK_WAIT_S the seconds until a mount must be in the table or absent from it.
set -u
LC_ALL=C
export LC_ALL
# shellcheck source=mount-source.sh
. "${0%/*}/mount-source.sh"
# shellcheck source=run-user.sh
. "${0%/*}/run-user.sh"
usage() { echo "usage: scratch-mount.sh look|mount|unmount POINT TYPE SOURCE [COMMAND [UNDO]]" >&2; exit 3; }
[ $# -ge 4 ] || usage
verb=$1 point=$2 type=$3 source=$4 command=${5-} undo=${6-}
case $point in /?*) ;; *) usage ;; esac
notes=${PROOFMARK_NOTES:-/run/proofmark/mounts}
note=$notes/$(printf %s "$point" | tr / -)
wait_s=${PROOFMARK_WAIT_S:-30}

# Prints the table of mounts, separated by tabs: type, point, source.
table() {
    awk '{
        gsub(/\\040/, " ", $1)
        gsub(/\\040/, " ", $2)
        print $3 "\t" $2 "\t" $1
    }' "${PROOFMARK_MOUNTS:-/proc/mounts}"
}
# Prints the uppermost file system at POINT as "TYPE SOURCE", or nothing.
mounted() {
    # The kernel shows the point without symbolic links.
    place=$(readlink -f -- "$point") || place=$point
    table | place=$place awk -F '\t' '$2 == ENVIRON["place"] { found = $1 " " $3 } END { if (found) print found }'
}
# Prints the mounts of TYPE, and those at POINT, that were not there before, one a line.
made() { # TABLE-BEFORE
    { printf '%s\n\n' "$1"; table; } | current=$(mounted) type=$type awk -F '\t' '
        NF == 0 { after = 1; next }
        !after { seen[$0] = 1; next }
        $0 in seen { next }
        $1 == ENVIRON["type"] || $1 ENVIRON["type"] == "nfs4nfs" || $1 " " $3 == ENVIRON["current"] {
            print $1 " (" $3 ") on " $2
        }'
}
accepted() { same_type "${1%% *}" "$type" && same_source "${1#* }" "$source"; } # "TYPE SOURCE"
report() { printf '| %s: %s on %s\n' "$1" "$type ($source)" "$point"; }
fail() { printf '%s: %s: %s\n' "$(uname -n)" "$point" "$1" >&2; exit 1; }
one_line() { printf '%s' "$1" | tr '\n' ' '; }
refuse_foreign() { # root mounts over no folder that another user can replace by a link
    [ "$(id -u)" = 0 ] || return
    other=$(foreign_part "$point" 0)
    [ -z "$other" ] || fail "is not mounted: $other"
}

remove_note() { # and the directory that was made for the mount, if it is empty
    [ ! -s "$note" ] || rmdir "$point" 2>/dev/null
    rm -f "$note"
}

fail_without_mount() { # TABLE-BEFORE REASON: undoes what the mount command did
    if [ -n "$(made "$1")" ]; then
        why=$(sh -c "${undo:-umount \"\$1\"}" sh "$point" 2>&1 </dev/null)
        waited=0
        while left=$(made "$1"); [ -n "$left" ] && [ "$waited" -lt "$wait_s" ]; do
            sleep 1
            waited=$((waited + 1))
        done
        # The note stays: `unmount` tries it again.
        [ -z "$left" ] || fail "$2; it cannot be undone ($(one_line "$why")), mounted is $(one_line "$left")"
        remove_note
        fail "$2; it is unmounted again"
    fi
    remove_note
    fail "$2"
}

current=$(mounted)
case $verb in
look | mount)
    if [ -n "$current" ]; then
        accepted "$current" || fail "found $current; accepted: $type $source, or nothing mounted"
        report there
        exit 0
    fi
    if [ "$verb" = look ]; then report 'would mount'; exit 0; fi
    refuse_foreign
    mkdir -p "$notes" || fail "cannot note in $notes what is mounted"
    # Before the mount: if the node dies between the two, its reset removes this note, too.
    : >"$note" || fail "cannot write $note"
    if [ ! -d "$point" ]; then
        # Another node with the same root file system may make it at this moment; it has the note.
        why=$(mkdir "$point" 2>&1) && echo made >"$note"
        [ -d "$point" ] || fail "cannot make the mount point: $why"
        refuse_foreign
    fi
    before=$(table)
    why=$(sh -c "$command" 2>&1 </dev/null) || fail_without_mount "$before" "$(one_line "$why")"
    # A mount in the background is in the table a moment later.
    waited=0
    while current=$(mounted); [ -z "$current" ] && [ "$waited" -lt "$wait_s" ]; do
        sleep 1
        waited=$((waited + 1))
    done
    if [ -z "$current" ]; then
        why="the exit code of the mount command is 0, but nothing is mounted after $wait_s s"
        elsewhere=$(one_line "$(made "$before")")
        fail_without_mount "$before" "$why${elsewhere:+; instead: $elsewhere}"
    fi
    accepted "$current" || fail_without_mount "$before" "mounted $current; accepted: $type $source; if this is \
the same file system, set scratch.type and scratch.source to what /proc/mounts shows"
    report mounted
    ;;
unmount)
    if [ ! -e "$note" ]; then
        printf '| left: not mounted by this kit\n'
    elif [ -z "$current" ]; then
        remove_note
    else
        why=$(sh -c "$command" 2>&1 </dev/null) || fail "$(one_line "$why")"
        waited=0
        while [ -n "$(mounted)" ] && [ "$waited" -lt "$wait_s" ]; do # a FUSE daemon ends slowly
            sleep 1
            waited=$((waited + 1))
        done
        [ -z "$(mounted)" ] || fail "is still mounted after $wait_s s: $(mounted)"
        remove_note
        report unmounted
    fi
    ;;
*) usage ;;
esac
