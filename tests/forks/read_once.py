"""What most commands read, read once before they are forked: forks find it in the caches."""

from tests.folders import BENCHMARKS

from proofmark.cases.loading import load_benchmarks
from proofmark.site.hardware_limits import links, processors

load_benchmarks(BENCHMARKS)
links()
processors()
