# shellcheck shell=sh
# ---- below this line all jobs, and all per-node steps, are the same ------------------------
is_disturbed() { # is_disturbed N FOLDER…: a FOLDER has 1 to N-1 executions, all disturbed
	most=$1
	shift
	for place in "$@"; do
		count=0
		for started in "$place"/execution-*/started; do
			[ -e "$started" ] || continue
			read -r _ _ _ by _ <"$started"
			[ "$by" != other ] || continue
			count=$((count + 1))
			[ -e "${started%started}disturbed" ] || { count=0 && break; }
		done
		[ "$count" = 0 ] || [ "$count" -ge "$most" ] || return 0
	done
	return 1
}

