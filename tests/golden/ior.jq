# IOR 3 has a list of results for each repetition, IOR 4 one list of all.
.tests[] as $t
| [$t.Results | flatten[] | select(.access == "write" or .access == "read")] as $rows
| [range($rows | length) as $i | $rows[$i] as $r | {
    case: "ior", benchmark: "IOR", metric: $r.access, value: $r.bwMiB, unit: "MiB/s",
    parameters: {
      api: $t.Parameters.api,
      layout: (if $t.Parameters.filePerProc == 1 then "file-per-process" else "single-shared-file" end),
      type: $t.Options.type, ordering: $t.Options["ordering in a file"],
      ordering_inter_file: ($t.Options["ordering inter file"] | split(" ")[0]),
      segments: $t.Options.segments,
      block_bytes: $t.Parameters.blockSize, transfer_bytes: $t.Parameters.transferSize,
      tasks: $t.Options.tasks,
      iteration: ([$rows[:$i][] | select(.access == $r.access)] | length)
    },
    valid: true
  }]
