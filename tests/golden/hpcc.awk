# HPL's row, then the lines of the summary that are named here; -1 means not measured.
BEGIN {
    FS = "="
    split("StarDGEMM_Gflops dgemm_star Gflop/s SingleDGEMM_Gflops dgemm_single Gflop/s PTRANS_GBs ptrans GB/s " \
        "MPIRandomAccess_LCG_GUPs randomaccess_lcg_mpi GUP/s MPIRandomAccess_GUPs randomaccess_mpi GUP/s " \
        "StarRandomAccess_LCG_GUPs randomaccess_lcg_star GUP/s SingleRandomAccess_LCG_GUPs randomaccess_lcg_single GUP/s " \
        "StarRandomAccess_GUPs randomaccess_star GUP/s SingleRandomAccess_GUPs randomaccess_single GUP/s " \
        "StarSTREAM_Copy stream_star_copy GB/s StarSTREAM_Scale stream_star_scale GB/s " \
        "StarSTREAM_Add stream_star_add GB/s StarSTREAM_Triad stream_star_triad GB/s " \
        "SingleSTREAM_Copy stream_single_copy GB/s SingleSTREAM_Scale stream_single_scale GB/s " \
        "SingleSTREAM_Add stream_single_add GB/s SingleSTREAM_Triad stream_single_triad GB/s " \
        "StarFFT_Gflops fft_star Gflop/s SingleFFT_Gflops fft_single Gflop/s MPIFFT_Gflops fft_mpi Gflop/s " \
        "MaxPingPongLatency_usec pingpong_latency_max usec AvgPingPongLatency_usec pingpong_latency_avg usec " \
        "MinPingPongLatency_usec pingpong_latency_min usec MinPingPongBandwidth_GBytes pingpong_bandwidth_min GB/s " \
        "AvgPingPongBandwidth_GBytes pingpong_bandwidth_avg GB/s MaxPingPongBandwidth_GBytes pingpong_bandwidth_max GB/s " \
        "NaturallyOrderedRingLatency_usec ring_latency_natural usec RandomlyOrderedRingLatency_usec ring_latency_random usec " \
        "NaturallyOrderedRingBandwidth_GBytes ring_bandwidth_natural GB/s " \
        "RandomlyOrderedRingBandwidth_GBytes ring_bandwidth_random GB/s", word, " ")
    for (i = 1; i in word; i += 3) { metric[word[i]] = word[i + 1]; unit[word[i]] = word[i + 2] }
}
/^W[RC][0-9]/ {
    split($0, row, " +")
    put("HPCC", "hpl_rmax", row[7], "Gflops", sprintf("\"n\": %s, \"nb\": %s, \"p\": %s, \"q\": %s", row[2], row[3], row[4], row[5]), 0)
}
/Ax-b.*PASSED$/ { good[n] = 1 }
$1 in metric && $2 > 0 { put("HPCC", metric[$1], $2, unit[$1], "", 1) }
$1 == "HPL_N" { size = $2 }
$1 == "HPL_NB" { block = $2 }
$1 == "CommWorldProcs" { ranks = $2 }
/^Success=1$/ { success = 1 }
END {
    for (i = 1; i <= n; i++)
        p[i] = (p[i] ? p[i] : "\"n\": " size ", \"nb\": " block) ", \"ranks\": " ranks
    flush(success)
}
