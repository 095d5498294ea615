# One job that writes and one that reads, each with the totals of its processes.
."global options" as $g
| [.jobs[] | {
    case: "fio-cache", benchmark: "fio", metric: ."job options".rw,
    value: (if ."job options".rw == "write" then .write.bw else .read.bw end), unit: "KiB/s",
    parameters: {
      block_bytes: ($g.size | tonumber), tasks: ($g.numjobs | tonumber), layout: $g.description
    },
    valid: (.error == 0)
  }]
