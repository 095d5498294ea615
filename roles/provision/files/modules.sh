#!/bin/sh
# modules.sh MODULE...: prints the variables that change when these modules are loaded.
#
#   set NAME=VALUE   one line per variable; a newline in VALUE is printed as the byte 1
#   secret NAME      the modules set it, and its name is that of a secret: its value stays here
#
# The two patterns are those of proofmark.common.processes. The modules get no secrets.
set -eu
secret='^PROOFMARK_BMC_|PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIAL|(^|_)PASS(_|$)|^SSHPASS$|_PWD$|(^|[^P])KEYS?($|_)'
plain='^GIT_CONFIG_|_(FILE|PATH|DIR|HOME|FOLDER)$'

secrets=$(env | LC_ALL=C awk -F= -v secret="$secret" -v plain="$plain" '
    $1 ~ /^[A-Za-z_][A-Za-z_0-9]*$/ && toupper($1) ~ secret && toupper($1) !~ plain { print $1 }')
for name in $secrets; do unset "$name"; done

# shellcheck disable=SC2016 # the login shell expands it
load='printf "\0"; env -0
type module >/dev/null 2>&1 || { echo "$(uname -n): the command module is missing in a login shell" >&2; exit 1; }
for name; do
    module load "$name" || exit 1
    module is-loaded "$name" || { echo "$(uname -n): module $name was not loaded" >&2; exit 1; }
done
printf "\0=== loaded\0"; env -0'
{
    code=0
    bash -lc "$load" modules "$@" || code=$?
    printf '\0=== exit %d\0' "$code"
} | tr '\012\000' '\001\012' | LC_ALL=C awk -v secret="$secret" -v plain="$plain" '
    $0 == "=== loaded" { loaded = 1 }
    /^=== exit [0-9]+$/ { code = substr($0, 10) }
    {
        name = $0
        sub(/=.*/, "", name)
        if (name !~ /^[A-Za-z_][A-Za-z_0-9]*$/ || name == $0) next
        if (!loaded) { before[name] = $0; next }
        if (before[name] == $0 || name ~ /^(_|SHLVL|PWD|OLDPWD)$/) next # a shell changes these
        if (toupper(name) ~ secret && toupper(name) !~ plain) print "secret " name
        else print "set " $0
    }
    END { exit code }'
