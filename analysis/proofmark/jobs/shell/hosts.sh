# shellcheck shell=sh
# same_host PLANNED REPORTED: whether two names are one host. A name without a domain stands for any
# domain; an address has none; upper case is lower case (proofmark.common.host_names). A node does not
# know which domain the hosts of the run share: the verdict refuses a host of another one.
same_host() {
	[ "$1" != "$2" ] || return 0
	# shellcheck disable=SC2018,SC2019,SC2046 # two words of the characters of host names
	case $1$2 in *[A-Z]*) set -- $(printf '%s %s' "$1" "$2" | tr A-Z a-z) ;; esac
	[ "$1" != "$2" ] || return 0
	case $1$2 in *:*) return 1 ;; esac # an IPv6 address
	case $1 in *[!0-9.]*) ;; *.*) return 1 ;; esac
	case $2 in *[!0-9.]*) ;; *.*) return 1 ;; esac
	[ "${1%%.*}" = "$2" ] || [ "$1" = "${2%%.*}" ]
}
