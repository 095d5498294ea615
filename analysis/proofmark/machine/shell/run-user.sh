#!/bin/sh
# run-user.sh has functions: what the run user does, and who decides what is found at a path.
# shellcheck disable=SC2154 # the scripts that read this one set user, path and name

me=$(id -un 2>/dev/null) # without an entry in the user database: the number

as_user() { # SH-TEXT: runs it as $user with $path and $name; its stdout and stderr are on stdout
    if [ "$user" = "$me" ]; then path=$path name=$name sh -c "$1" 2>&1
    else path=$path name=$name su -s /bin/sh "$user" -c "$1" 2>&1; fi
}

# Prints why $user cannot do anything at $path; nothing if $user can.
why_not() {
    if [ "$user" = "$me" ]; then foreign_part "$path/." "$(id -u)"
    elif ! id "$user" >/dev/null 2>&1; then echo "no such user: $user"
    elif [ "$(id -u)" != 0 ]; then echo "$me cannot become $user"
    else foreign_part "$path/." "$(id -u "$user")"; fi
}

# Prints the first part of PATH that a user other than UID and root chose; nothing if there is none.
# Links are followed part by part. For root it is any part in a folder that another user owns or can
# write. A user loses only files of its own there: for a user it is a part that another user made in a
# folder of all users.
foreign_part() ( # PATH UID
    rest=$1 uid=$2 links=0
    set -f
    cd / || exit
    while rest=${rest#"${rest%%[!/]*}"} && [ -n "$rest" ]; do
        part=${rest%%/*}
        rest=${rest#"$part"}
        # shellcheck disable=SC2046 # the owner, the group and the mode of the folder, its owner's name
        set -- $(stat -c '%u %g %A %U' .)
        if [ "$uid" = 0 ] && [ "$1" != 0 ]; then echo "$PWD belongs to $4" && exit; fi
        shared=''
        case $3 in
        ????????w?) shared=yes ;;
        ?????w????) [ "$uid" != 0 ] || [ "$2" = 0 ] || shared=yes ;;
        esac
        if [ -n "$shared" ]; then
            if [ "$uid" = 0 ]; then case $3 in *[tT]) ;; *) echo "other users can write in $PWD" && exit ;; esac; fi
            owner=$(stat -c '%u %U' "./$part" 2>/dev/null) || exit 0
            case ${owner%% *} in
            0 | "$uid") ;;
            *) echo "${PWD%/}/$part belongs to ${owner#* }, and other users can write in $PWD" && exit ;;
            esac
        fi
        if [ -L "./$part" ]; then
            links=$((links + 1))
            [ "$links" -le 40 ] || { echo "${PWD%/}/$part has too many links" && exit; }
            target=$(readlink "./$part") || exit 0
            case $target in /*) cd / ;; esac
            rest=$target$rest
        else
            cd -P "./$part" 2>/dev/null || exit 0
        fi
    done
)
