#!/bin/sh
# mount-source.sh has functions: whether the mount that the kernel shows is the one that a site names.
#
# mount.lustre(8) replaces host names by addresses and tcp0 by tcp. mount.nfs(8) shows a mount of type
# nfs as nfs4 if the server speaks version 4.

same_type() { # SHOWN WANTED
    [ "$1" = "$2" ] || [ "$1 $2" = 'nfs4 nfs' ]
}

# Prints the path, then each server with its network, one a line. Without a colon SOURCE is one line.
source_parts() { # SOURCE
    printf '%s\n' "$1" | awk '{
        at = match($0, /:[^]:]*$/)
        if (!at) { print; exit }
        path = substr($0, at + 1)
        gsub(/^\/+|\/+$/, "", path)
        print "/" path
        servers = substr($0, 1, at - 1)
        count = servers ~ /^\[/ ? split(substr(servers, 2, length(servers) - 2), list, /\n/) \
            : split(servers, list, /[,:]/)
        for (each = 1; each <= count; each++) {
            if (list[each] !~ /@/) list[each] = list[each] "@tcp"
            if (list[each] ~ /[a-z]0$/) sub(/0$/, "", list[each])
            print list[each]
        }
    }'
}

addresses() { # HOST: prints it and its addresses
    printf '%s\n' "$1"
    case $1 in
    '' | -* | *[!0-9A-Za-z._:-]*) ;; # no host name
    *) getent ahosts "$1" 2>/dev/null | awk '{ print $1 }' ;;
    esac
}

same_part() { # SHOWN WANTED: the same network, and names of one host
    [ "$1" = "$2" ] && return
    [ "${1##*@}" = "${2##*@}" ] || return
    case $1$2 in *@*@*) addresses "${1%@*}" | grep -qixF -e "$(addresses "${2%@*}")" ;; *) return 1 ;; esac
}

# Succeeds if both are names of one file system. A host name is looked up only if the texts differ.
same_source() ( # SHOWN WANTED
    [ "$1" = "$2" ] && exit
    parts=$(source_parts "$2")
    set -f
    IFS='
'
    # shellcheck disable=SC2046 # one part a line
    set -- $(source_parts "$1")
    for part in $parts; do
        [ $# -gt 0 ] && same_part "$1" "$part" || exit 1
        shift
    done
    [ $# -eq 0 ]
)
