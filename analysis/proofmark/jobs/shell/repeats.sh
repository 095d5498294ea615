# shellcheck shell=sh
# ---- below this line all jobs, and all per-node steps, are the same ------------------------
is_disturbed() { # is_disturbed FOLDER…: all executions of a FOLDER were disturbed; sets PLACE to it
	for PLACE in "$@"; do
		count=0
		for started in "$PLACE"/execution-*/started; do
			[ -e "$started" ] || continue
			read -r _ _ _ by _ <"$started"
			[ "$by" != other ] || continue
			count=$((count + 1))
			[ -e "${started%started}disturbed" ] || { count=0 && break; }
		done
		[ "$count" = 0 ] || return 0
	done
	return 1
}

