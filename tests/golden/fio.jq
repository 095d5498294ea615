# One job that writes and one that reads, each with the totals of its processes.
."global options" as $g
| [.jobs[] | ($g + ."job options") as $o | {
    case: "fio-cache", benchmark: "fio", metric: (if $o.rw | endswith("write") then "write" else "read" end),
    value: (if $o.rw | endswith("write") then .write.bw else .read.bw end), unit: "KiB/s",
    parameters: ({
      pattern: $o.rw, transfer_bytes: ({"2m": 2097152, "4k": 4096}[$o.bs]),
      tasks: ($g.numjobs | tonumber), layout: ($g.description // "file-per-process"),
      direct: ($o.direct // "0"), iodepth: ($o.iodepth // "1" | tonumber),
      engine: ($o.ioengine // "psync")
    } + if $o.time_based
        then {file_bytes: ($g.size | tonumber), runtime: $o.runtime}
        else {block_bytes: ($g.size | tonumber)} end),
    valid: (.error == 0)
  }]
