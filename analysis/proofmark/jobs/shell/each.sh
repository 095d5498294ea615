# shellcheck shell=sh disable=SC2153 # the head that stands before this in every run.sh sets them
# ---- below this line every step that nodes measure by themselves is alike ----------------
# sh run.sh   measures this node, or the pair that it is the first of, in a folder of its own
# The folder gets a run.sh like that of any other step. A node that the step does not ask: exit 0.
# sh run.sh --unfinished [--without=NODE,…]   (of a job) does nothing where the node has measured
# already, or where its pair's other node is one of those that the job has not
HERE=$(CDPATH='' cd -- "${0%run.sh}." && pwd) || exit 74
read -r HOST </proc/sys/kernel/hostname

FOLDER=
while read -r folder node peer; do
	[ "${node%%.*}" != "${HOST%%.*}" ] || { FOLDER=$folder NODE=$node PEER=$peer && break; }
done <"$HERE/instances"
[ -n "$FOLDER" ] || exit 0
if [ "${1-}" = --unfinished ]; then
	shift
	[ ! -e "$HERE/$FOLDER/rc" ] || exit 0
fi
case ${1-} in
--without=*)
	case ",${1#*=}," in *",${PEER:-,},"*) exit 0 ;; esac
	shift
	;;
esac

mkdir -p "$HERE/$FOLDER" || exit 74
for file in $INPUTS node.sh; do
	name=$file
	[ "$file" != node.sh ] || name=run.sh
	[ ! -e "$HERE/$FOLDER/$name" ] || continue
	sed "s|@FOLDER@|$FOLDER|g; s|@NODE@|$NODE|g; s|@PEER@|$PEER|g" "$HERE/$file" \
		>"$HERE/$FOLDER/$name.new" &&
		mv "$HERE/$FOLDER/$name.new" "$HERE/$FOLDER/$name" || exit 74
done

if [ "$STAGGER" != 0 ]; then
	sum=$(printf %s "$NODE" | cksum) # the same pause in every run, spread over the nodes
	sleep $((${sum%% *} % STAGGER))
fi
exec sh "$HERE/$FOLDER/run.sh" "$@"
