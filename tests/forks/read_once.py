"""What most commands read, read once before they are forked: forks find it in the caches."""

import functools
from pathlib import Path

import ansible
from ansible.utils.collection_loader import _collection_finder
from tests.folders import BENCHMARKS

from proofmark.cases.loading import load_benchmarks
from proofmark.site.hardware_limits import links, processors

load_benchmarks(BENCHMARKS)
links()
processors()
# Ansible allows this replacement "to cache the output". No setting changes what the text says.
_collection_finder._meta_yml_to_dict = functools.cache(_collection_finder._meta_yml_to_dict)
_collection_finder._meta_yml_to_dict(
    Path(ansible.__file__).with_name("config").joinpath("ansible_builtin_runtime.yml").read_bytes(),
    ("ansible.builtin", "runtime.yml"),
)
