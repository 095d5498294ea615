# shellcheck shell=sh disable=SC2153 # the first lines of every run.sh set these variables
# ---- below this line all steps that write files are the same -------------------------------
# WRITES has a word and two numbers: "running" or "ended", the least bytes and the least files.
MOST_FILES=10000 # a look at more files would take too long

look_at_scratch() { # sets bytes, files, place: the files of the program, the folder of the largest
	set --
	for given in $INPUTS $MADE; do set -- "$@" ! -name "$given"; done
	found=$(find "$SCRATCH/." -type f "$@" -exec ls -ln {} + 2>/dev/null | awk -v most="$MOST_FILES" '{
			bytes += $5
			files++
			if ($5 >= longest) {
				longest = $5
				place = $0
				for (word = 1; word <= 8; word++) sub(/^ *[^ ]+ +/, "", place)
				sub(/\/[^\/]*$/, "", place)
			}
			if (files >= most) exit
		}
		END { printf "%.0f %d %s\n", bytes, files, files ? place : "" }')
	bytes=${found%% *} place=${found#* } files=${place%% *} place=${place#* }
	[ -n "$place" ] || place=$SCRATCH
}

mount_of() { # mount_of FOLDER: sets real, kind, source, target; the deepest mount, the last of equal
	real=$(CDPATH='' cd -- "$1" 2>/dev/null && pwd -P) || real=$1
	line=$(real=$real awk '{
			target = $2
			gsub(/\\040/, " ", target)
			inside = target == "/" || ENVIRON["real"] == target || index(ENVIRON["real"], target "/") == 1
			if (inside && length(target) >= longest) { longest = length(target); line = $0 }
		}
		END { print line }' /proc/mounts)
	kind=${line#* } source=${line%% *} target=${kind%% *} kind=${kind#* } kind=${kind%% *}
}

write_scratch() { # write_scratch FILE: what was seen, as JSON; bytes and files are the last numbers
	mount_of "$place"
	entry="\"bytes\": $bytes, \"files\": $files, \"most\": $MOST_FILES"
	for key in scratch:"$SCRATCH" real:"$real" kind:"$kind" source:"$source" target:"$target"; do
		json=
		json_text "${key#*:}" # of step.sh: sets json
		entry="$entry, \"${key%%:*}\": \"$json\""
	done
	echo "{$entry}" >"$1.new" && mv "$1.new" "$1"
}

watch_scratch() { # keeps the largest look until it is enough; the pauses grow to five seconds
	# shellcheck disable=SC2086 # three words
	set -- $WRITES
	pause=1 waited=0 # tenths of a second
	most_bytes=-1 most_files=-1
	while [ "$waited" -lt $((TIMEOUT * 10)) ]; do
		if [ -e scratch.made ]; then # older files are removed before
			look_at_scratch
			if [ "$bytes" -gt "$most_bytes" ] || [ "$files" -gt "$most_files" ]; then
				most_bytes=$bytes most_files=$files
				write_scratch scratch.seen
			fi
			if [ "$files" -ge "$MOST_FILES" ]; then return; fi
			if [ "$bytes" -ge "$2" ] && [ "$files" -ge "$3" ]; then return; fi
		fi
		PROOFMARK_STEP=$OUT/ sleep "$((pause / 10)).$((pause % 10))" || return # by a later run.sh
		waited=$((waited + pause)) pause=$((pause * 2))
		[ "$pause" -lt 50 ] || pause=50
	done
}

report_scratch() { # writes scratch.json: what was seen during the program, or is there at its end
	if [ -f scratch.seen ]; then
		mv scratch.seen scratch.json
	else
		look_at_scratch
		write_scratch scratch.json
	fi || exit 74
	rm -f scratch.seen.new scratch.made
}
