#!/bin/sh
# Derives benchmarks/samples/*.expected.json from the samples, by awk and jq and without the kit's
# reader, so that the two can be held against each other. Samples that hold no reading at all are
# not among them: what is expected of those was written by hand.
set -eu
here=$(dirname "$0")
samples=$here/../../benchmarks/samples
wild=../../tests/data/wild

by_awk() { # CASE SCRIPT SAMPLE...
    case=$1 script=$2
    shift 2
    for sample; do
        awk -v case="$case" -f "$here/lib.awk" -f "$here/$script.awk" "$samples/$sample.txt" \
            > "$samples/$sample.expected.json"
    done
}

by_jq() { # SCRIPT SAMPLE...
    script=$1
    shift
    for sample; do
        # Programs warn before the document.
        sed -n '/^{/,$p' "$samples/$sample.json" | jq -f "$here/$script.jq" \
            > "$samples/$sample.expected.json"
    done
}

by_awk hpl hpl hpl-2.3_N2048-6144_NB128-192_P1Q2 hpl-2.3_N200-400_NB40_P1Q2_failed
by_awk hpcc hpcc hpcc-1.5.0_N4000_n2 hpcc-1.5.0_N200-400_n1 hpcc-1.5.0_N200-400_n2_failed
by_awk stream stream stream-5.10_N64000000_t2 stream-5.10_N2000000_t2 stream-5.10_N2000000_serial
by_awk os-noise os_noise os_noise-1.0_t2_realtime os_noise-1.0_t2_disturbed
by_awk likwid-triad likwid likwid-bench-5.2.2_stream_kB95232_t2
by_awk ior ior \
    ior-3.3.0_posix_b4m_t1m_n2_shared ior-3.3.0_posix_b4m_t2m_n2_fpp_verbose \
    ior-4.0.0_posix_b4m_t2m_n2_fpp_verbose ior-4.0.0_posix_b47008_n2 \
    ior-4.0.0_posix_wr_b16m_t1m_n2_fpp ior-4.0.0_posix_wr_b16m_t1m_n2_shared \
    ior-4.0.0_posix_b4g_t1m_n2_stonewall ior-3.3.0_posix_b47008_n4_stonewall ior-4.0.0_verify_n2 \
    ior-4.0.0_corrupt_n2 ior-4.0.0_eio_n2
by_awk mdtest mdtest \
    mdtest-4.0.0_100items_own_n4 mdtest-3.3.0_100items_one_n2 mdtest-4.0.0_create_files_n2 \
    mdtest-3.3.0_stonewall_files_n2
by_jq ior ior-3.3.0_posix_b4m_t1m_n2_fpp ior-4.0.0_mpiio_b4m_t1m_n2_shared
by_awk stressapptest stressapptest \
    stressapptest-1.0.6_M256_s10_n2 stressapptest-1.0.6_M64_s6_n1_errors
by_jq fio fio-3.33_4m_2m_n2_shared fio-3.33_4m_2m_n2_fpp fio-3.33_4m_2m_n2_enospc
by_awk npb-btio npb \
    npb-3.4.3_bt.A_full_n4 npb-3.4.3_bt.W_full_n4 npb-3.4_bt.S_epio_n4 \
    npb-3.4_bt.S_epio_n4_unverified npb-3.4_bt.S_fortran_n4 npb-3.4_bt.S_simple_n4 \
    npb-3.4_bt.S_n4 npb-3.4_bt.S_n5_idle_rank
by_awk imb-pingpong imb imb-2021.7_PingPong_n2 imb-2021.18.1_p2p_n2 imb-2021.18.1_p2p_n3_refused
by_awk imb-collectives imb \
    imb-2021.7_Allreduce_n2 imb-2021.18.1_collectives_n4_timeouts imb-2021.18.1_mixed_npmin2_n3 \
    imb-2021.18.1_multi_n4 imb-2021.18.1_nbc_n2 imb-2021.18.1_rma_n2
by_awk osu-latency osu \
    osu-7.4_latency_n2 osu-7.4_latency_n2_validate osu-7.4_multi_lat_n4 osu-7.4_put_latency_n2 \
    osu-7.4_latency_m8_n2 osu-7.4_init_n2
by_awk osu-bw osu osu-7.4_bw_n2 osu-5.3_put_bw_n2
by_awk osu-bibw osu osu-7.4_bibw_n2 osu-7.4_bibw_m4M_n2
by_awk osu-contention osu osu-7.4_bw_2copies_n4
by_awk osu-mbw-mr osu \
    osu-7.4_mbw_mr_n2 osu-7.4_mbw_mr_n4 osu-7.4_mbw_mr_n4_norate osu-5.3_mbw_mr_n4
by_awk osu-collectives osu \
    osu-7.4_allreduce_n2 osu-7.4_allgather_n4_full_tail osu-7.4_barrier_n4_full \
    osu-7.4_iallreduce_n4_full osu-7.4_ibarrier_n4 osu-5.3_allgather_n4_full osu-5.3_barrier_n4 \
    osu-5.3_ialltoall_n4

# Outputs of other sites. STREAM in GB/s has another unit; the mixed one has only INVALID readings.
by_awk hpl hpl "$wild"/hpl-amd-zen_a "$wild"/hpl-amd-zen_b "$wild"/hpl-1.0a_two-variants
by_awk ior ior \
    "$wild"/ior-3.0_akrr "$wild"/ior-3.3_akrr "$wild"/ior_io500_altair_ior-hard-write \
    "$wild"/ior_io500_frontera_ior-easy-read "$wild"/ior_io500_fsync-failed \
    "$wild"/ior_io500_mistral_ior-easy-read "$wild"/ior_io500_oakforest-pacs_ior-hard-write \
    "$wild"/ior_io500_read-only
by_awk osu-collectives osu "$wild"/osu-5.7.1_ibarrier "$wild"/osu_alltoall_job-script-lines
by_jq fio "$wild"/fio_time-based_rand_read "$wild"/fio_time-based_rand_write
by_awk stream stream "$wild"/stream_rate-in-GBs "$wild"/stream_interleaved_excerpt
