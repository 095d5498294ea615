#!/bin/sh
# Makes the topologies in this folder anew with hwloc's own tools: sh make.sh
# They stand in for machines that are not at hand; each comment says what is special about one.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 143' INT TERM HUP # dash runs no trap of EXIT at a signal

synthetic() { # FILE DESCRIPTION
    rm -f "$1"
    lstopo-no-graphics --input-format synthetic --input "$2" --of xml "$1"
}

subtype() { # FILE SUBTYPE INDEX…: name memories by their logical index
    file=$1 name=$2
    shift 2
    for index; do hwloc-annotate "$file" "$file" "numanode:$index" subtype "$name"; done
}

distances() { # FILE NODES VALUE…: the latency matrix of its NUMA nodes, row by row
    file=$1 nodes=$2
    shift 2
    {
        printf 'name=NUMALatency\n5\n%s\n' "$nodes" # 5: from the OS, means latency
        awk -v n="$nodes" 'BEGIN { for (i = 0; i < n; i++) print "numanode:" i }'
        printf '%s\n' "$@"
    } >"$work/distances"
    hwloc-annotate "$file" "$file" root distances "$work/distances"
}

# Xeon Phi 7250, quadrant and cache mode; hardware threads numbered core by core.
synthetic knl_quad.xml 'pack:1 [numa(memory=96GiB)] l2:34 core:2 pu:4'

# The same in flat mode, hardware threads numbered as Linux does, memories named.
synthetic knl_quad_flat.xml \
    'pack:1 [numa(memory=96GiB)] [numa(memory=16GiB)] l2:34(size=1MiB) core:2 pu:4(indexes=4*68:68*1)'
subtype knl_quad_flat.xml DRAM 0
subtype knl_quad_flat.xml MCDRAM 1

# A many-core processor of 36 tiles in four even domains; MCDRAM not named.
synthetic knl_snc4flat.xml \
    'pack:1 group:4 [numa(memory=24GiB)] [numa(memory=4GiB)] l2:9 core:2 pu:4'

# Xeon Phi 7250 in SNC-4 and flat mode: 34 tiles make uneven domains of 18, 18, 16 and 16 cores.
# It is the 36 tiles without the last ones of two domains (cores 52, 53, 70 and 71), whose hardware
# threads are given the numbers from 272.
threads=$(awk 'BEGIN {
    for (core = 0; core < 72; core++) {
        gone = core == 52 || core == 53 || core >= 70
        first = gone ? 272 + 4 * left_out++ : kept++
        for (thread = 0; thread < 4; thread++)
            printf "%s%d", (sep++ ? "," : ""), first + thread * (gone ? 1 : 68)
    }
}')
memories='[numa(memory=24GiB indexes=0,4,1,5,2,6,3,7)] [numa(memory=4GiB)]'
synthetic "$work/even.xml" \
    "pack:1 group:4 $memories l2:9(size=1MiB) core:2 pu:4(indexes=$threads)"
there=$(hwloc-calc -i "$work/even.xml" --physical-input pu:0-271)
rm -f knl_snc4_flat_uneven.xml
lstopo-no-graphics -i "$work/even.xml" --restrict "$there" --of xml knl_snc4_flat_uneven.xml
subtype knl_snc4_flat_uneven.xml DRAM 0 2 4 6
subtype knl_snc4_flat_uneven.xml MCDRAM 1 3 5 7

# Two Xeon Gold 6148 without caches or distances.
synthetic skl.xml 'pack:2 [numa] core:20 pu:1'

# The same with caches, SMT and SNC-2; the distances within a socket are shorter.
synthetic skl_snc2_smt2.xml "pack:2 group:2 [numa(memory=48GiB)] l3:1(size=14080KiB)
    l2:10(size=1MiB) core:1 pu:2(indexes=2*40:40*1)"
distances skl_snc2_smt2.xml 4 \
    10 11 21 21 \
    11 10 21 21 \
    21 21 10 11 \
    21 21 11 10

# Four quad-core Barcelona in a square: the sockets across are two hops away.
synthetic tachyon1.xml \
    'pack:4 [numa(memory=8GiB)] l3:1(size=2MiB) l2:4(size=512KiB) core:1 pu:1'
distances tachyon1.xml 4 \
    10 16 16 22 \
    16 10 22 16 \
    16 22 10 16 \
    22 16 16 10

# Two quad-core Nehalem, whose firmware numbers the sockets' cores in turn.
synthetic tachyon2.xml "pack:2 [numa(memory=12GiB)] l3:1(size=8MiB) l2:4(size=256KiB) core:1
    pu:1(indexes=0,2,4,6,1,3,5,7)"
distances tachyon2.xml 2 \
    10 20 \
    20 10

# IBM Power 595: eight books of four packages; no caches, no distances, memory not stated.
synthetic p595.xml 'group:8 [numa] pack:4 core:2 pu:2'

# A laptop: no package, no NUMA level of its own.
synthetic laptop.xml 'core:2 pu:2'
