# shellcheck shell=sh disable=SC2153 # the first lines of every run.sh set these variables
# ---- below this line all steps that set the layout of their files are the same -------------
# set_layout and print_layout FILE are above: they call the tool of the file system.
MOST_LAYOUTS=64 # files; more would take too long

report_layout() { # writes layout.txt: the layout of the files that the program left in scratch
	find "$SCRATCH/." -type f 2>/dev/null | sed "${MOST_LAYOUTS}q" | while IFS= read -r file; do
		print_layout "$file"
	done >layout.txt 2>&1
}
