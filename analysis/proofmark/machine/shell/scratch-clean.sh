#!/bin/sh
# scratch-clean.sh FOLDER… removes these folders, and prints each that it removed.
for folder; do
	case $folder in
	/?*/?*) ;;
	*) echo "scratch-clean.sh: $folder is no folder of a run" >&2 && exit 3 ;;
	esac
	if [ ! -e "$folder" ] && [ ! -L "$folder" ]; then continue; fi
	rm -rf "$folder" || exit 74
	echo "removed $folder"
done
