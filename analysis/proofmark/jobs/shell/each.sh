# shellcheck shell=sh disable=SC2153 # the first lines of every run.sh set these variables
# sh run.sh   measures this node, or the pair whose first node it is, in the folder of the instance
# The folder gets a run.sh like that of any other step. Exit 0 on a node that is not in the step.
# sh run.sh --attempt=ATTEMPT [--unfinished | --disturbed] [--without=NODE,…]
#             (for an attempt of a job)
# With --unfinished it does nothing if there is a result; with --disturbed, if an execution was not
# disturbed; with --without, if the other node of its pair is one of NODE.
HERE=$(CDPATH='' cd -- "${0%run.sh}." && pwd) || exit 74
read -r HOST </proc/sys/kernel/hostname

FOLDER=
while read -r folder node peer; do
	same_host "$node" "$HOST" || continue
	if [ -n "$FOLDER" ]; then
		echo "$HERE: both $NODE and $node can be the host $HOST: their full names are needed" >&2
		exit 74
	fi
	FOLDER=$folder NODE=$node PEER=$peer
	[ "$node" != "$HOST" ] || break
done <"$HERE/instances"
[ -n "$FOLDER" ] || exit 0
case ${1-} in
--attempt=*)
	PROOFMARK_ATTEMPT=${1#*=} # a launcher on another node may not pass the environment
	export PROOFMARK_ATTEMPT
	shift
	;;
esac
if [ "${1-}" = --unfinished ]; then
	shift
	for started in "$HERE/$FOLDER"/execution-*/started; do
		[ -e "$started" ] || continue
		read -r _ _ _ by _ <"$started"
		[ "$by" = other ] || exit 0
	done
fi
if [ "${1-}" = --disturbed ]; then
	shift
	is_disturbed "$HERE/$FOLDER" || exit 0
fi
case ${1-} in
--without=*)
	case ",${1#*=}," in *",${PEER:-,},"*) exit 0 ;; esac
	shift
	;;
esac

mkdir -p "$HERE/$FOLDER${LOAD_FILES:+/load}" || exit 74
for file in $INPUTS node.sh $LOAD_FILES; do
	name=$file
	case $file in node.sh | load/node.sh) name=${file%node.sh}run.sh ;; esac
	[ ! -e "$HERE/$FOLDER/$name" ] || continue
	# As private as node.sh, which has the environment of the program.
	(umask 077 && sed "s|@FOLDER@|$FOLDER|g; s|@NODE@|$NODE|g; s|@PEER@|$PEER|g" "$HERE/$file" \
		>"$HERE/$FOLDER/$name.new") &&
		mv "$HERE/$FOLDER/$name.new" "$HERE/$FOLDER/$name" || exit 74
done

if [ "$STAGGER" != 0 ]; then
	sum=$(printf %s "$NODE" | cksum) # a different pause on each node, the same in every run
	sleep $((${sum%% *} % STAGGER))
fi
exec sh "$HERE/$FOLDER/run.sh" "$@"
