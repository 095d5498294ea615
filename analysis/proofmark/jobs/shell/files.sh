# shellcheck shell=sh disable=SC2154 # step.sh and run.sh set the variables
# ---- below this line all steps are the same ------------------------------------------------
# A process that waits for a file system may not end, not even by SIGKILL. So each access to the
# scratch folder is a process of its own, which is left alone after a limit.
ANSWER_S=${PROOFMARK_ANSWER_S:-30} # seconds in which a file system must take a small file
NO_ANSWER=142
ANSWERED=true # false: an access did not end

answers() { # answers SECONDS COMMAND…: its exit code; NO_ANSWER if it has not ended after SECONDS
	most=$(($1 * 100)) waited=0 pause=2 # hundredths of a second
	shift
	"$@" &
	query=$!
	while alive "$query"; do
		if [ "$waited" -ge "$most" ]; then
			kill -KILL "$query" 2>/dev/null
			return "$NO_ANSWER"
		fi
		sleep "0.$((pause / 10))$((pause % 10))"
		waited=$((waited + pause))
		[ "$pause" -ge 16 ] || pause=$((pause * 2))
	done
	wait "$query"
}

try_files() { # writes a small file beside the files of the step; prints why it cannot
	folder=$SCRATCH
	until [ -d "$folder" ] || [ -z "$folder" ]; do folder=${folder%/*}; done
	file=$folder/.proofmark-$HOST-$$
	why=$(dd if=/dev/zero of="$file" bs=64k count=1 conv=fsync 2>&1) || printf '%s\n' "$why"
	rm -f "$file"
}

# Each node reports the folder of the step; each.sh replaces the word @FOLDER@.
report_files() { # report_files FILE: as JSON, whether the scratch folder takes a small file
	answers "$ANSWER_S" try_files >"$1.why" 2>&1
	[ $? != "$NO_ANSWER" ] || ANSWERED=false
	json=
	json_text "$(sed -n '/^dd: /p; $p' "$1.why" | sed -n 1p)"
	why=$json
	json_text "${SCRATCH%/@FOLDER@}"
	printf '{"host": "%s", "scratch": "%s", "answered": %s, "seconds": %d, "why": "%s"}\n' \
		"$HOST" "$json" "$ANSWERED" "$ANSWER_S" "$why" >"$1.new" && mv "$1.new" "$1"
	rm -f "$1.why"
}

make_scratch() {
	[ ! -e "$SCRATCH" ] || rm -rf "$SCRATCH"
	# Another node may remove the folder of the step, which is empty, before this makes its own.
	mkdir -p "$SCRATCH" 2>/dev/null || mkdir -p "$SCRATCH" 2>/dev/null || mkdir -p "$SCRATCH"
}

keeps_files() { # a step will read them: after this one, or this one again
	case $FILES in
	kept) [ "$RC$INTERRUPTED" = 0 ] ;;
	read) [ -n "$INTERRUPTED" ] ;;
	*) false ;;
	esac
}

clear_scratch() { # copies the output file of the program
	[ -z "$DIRECTORY" ] || [ -z "$MADE" ] || [ ! -f "$DIRECTORY/$MADE" ] || cp "$DIRECTORY/$MADE" .
	keeps_files || {
		rm -rf "$SCRATCH"
		rmdir "${SCRATCH%/*}" 2>/dev/null # the scratch of the run, after its last step
		:
	}
}

report_written() {
	[ -z "$WRITES" ] || report_scratch
	[ -z "$LAYOUT" ] || report_layout
}

leave_scratch() { # after the program, at most as long as the program may run, or a minute
	limit=$TIMEOUT
	[ "$limit" -ge 60 ] || limit=60
	[ -z "$INTERRUPTED" ] || limit=10
	if [ -z "$INTERRUPTED" ] && { [ "$RC" != 0 ] || [ -e timed_out ]; }; then report_files files.json; fi
	[ "$ANSWERED" = true ] || return
	if [ -z "$INTERRUPTED" ] && [ -n "$WRITES$LAYOUT" ]; then
		answers "$limit" report_written
		case $? in
		74) exit 74 ;;
		"$NO_ANSWER") ANSWERED=false ;;
		esac
	fi
	[ "$ANSWERED" = false ] || answers "$limit" clear_scratch
	[ $? != "$NO_ANSWER" ] || ANSWERED=false
	[ "$ANSWERED" = true ] || [ -n "$INTERRUPTED" ] || report_files files.json
}
