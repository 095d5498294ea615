"""The command ``init``."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from proofmark.cli.command import ArgumentUse, Command, flag, whole
from proofmark.cli.output import print_line, print_text
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import text_or_empty
from proofmark.common.input_limits import MAX_YAML_BYTES
from proofmark.common.kit import kit_folder
from proofmark.common.nodesets import folded
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.progress_lines import say
from proofmark.packages.survey.collection import (
    NONE,
    node_name,
    node_runner,
    site_runner,
    survey,
    with_rates,
)
from proofmark.packages.survey.fabric_findings import fabric_levels, unnamed_adapters
from proofmark.packages.survey.findings import environments_in
from proofmark.packages.survey.inventory_files import (
    compare,
    inventory_files,
    site_of_node,
    write_files,
)
from proofmark.packages.survey.listings import LISTINGS
from proofmark.site.choice import choose_site, chosen_site
from proofmark.site.groups import COMPUTE, MARK, comments, keys_of, literal_yaml
from proofmark.site.inventory import Site, load_sites

DIFFERENT = 1
_VALUE = re.compile(rf"^\s*(?:!unsafe\s+)?(['\"]?){MARK}\s*(.+?)\1\s*$")


def init(options: Namespace) -> int:
    """Write the inventory of a site from what its scheduler and nodes report, or compare one."""
    if options.fabric:
        return _print_fabric(options.fabric, [name for name in options.levels.split(",") if name])
    if options.site is None or options.from_node is None:
        missing = "SITE" if options.site is None else "--from-node"
        raise bad_input("init", "", f"no {missing}", "SITE --from-node NODE, or --fabric FILE")
    options.from_node = [node_name(name) for name in options.from_node]
    return _diff(options) if options.diff else _write(options)


def required(inventory: Path) -> Iterator[tuple[str, str]]:
    """Yield ``file:line`` and the text of each question that stands in place of a value.

    A run starts only after the answer. The text begins with the key below ``partition``.
    """
    for file in sorted(inventory.rglob("*.yml")):
        for number, key, value in keys_of(text_or_empty(file, MAX_YAML_BYTES).splitlines()):
            if question := _VALUE.match(value):
                text = question[2].replace("''", "'") if question[1] == "'" else question[2]
                yield f"{file}:{number}", f"{key}: {text}"


def _write(options: Namespace) -> int:
    folder: Path = options.site
    if (folder / "hosts.yml").exists():  # before minutes of work
        accepted = f"a new site; `init --diff {folder}` compares it, and writes nothing"
        raise bad_input(folder / "hosts.yml", "", "an existing inventory", accepted)
    run_script = node_runner(become=options.become)
    found = survey(options.from_node, options.scheduler, run_script, say, bmc_port=options.bmc_port)
    measured = {
        name: with_rates(each, run_script, say) if each.facts else each
        for name, each in found.reports.items()
    }
    found = replace(found, reports=measured)
    files = inventory_files(found, environments_in(kit_folder() / "environments"))
    write_files(folder, files)
    for name in files:
        print_line(f"wrote {folder / name}")
    for kind in found.kinds:
        print_line(f"partition {kind.name}: {folded(kind.names)}")
    needed, others = [*required(folder)], [*comments(folder)]
    for place, question in needed:
        print_line(f"question: {place}: {question} (needs an answer)")
    for place, question in others:
        print_line(f"question: {place}: {question}")
    named = of_person(folder, "FOLDER")
    need = "needs" if len(needed) == 1 else "need"
    counts = f"questions: {len(needed) + len(others)}, of which {len(needed)} {need} an answer"
    print_line(f"{counts}; {PrintedCommand('grep', '-rn', MARK, named)}")
    _choose(folder)
    print_line(f"next: {PrintedCommand('proofmark', 'check', '-i', named)}")
    return 0


def _choose(folder: Path) -> None:
    """Make a new site of the checkout the chosen one, if none is chosen."""
    kit = kit_folder()
    if folder.resolve().parent != Path(kit.resolve(), "inventory"):
        return
    try:
        chosen = chosen_site(kit)
    except BadInput:
        choose_site(kit, folder)
        chosen = folder
    print_line(f"the chosen site: {chosen.name}; make site SITE={folder.name} chooses this one")


def _diff(options: Namespace) -> int:
    sites = load_sites(options.site, COMPUTE)
    chosen = [site_of_node(sites, node) for node in options.from_node]
    scheduler = options.scheduler or _declared_scheduler(chosen)
    run_script = site_runner(sites, become=options.become)
    found = survey(options.from_node, scheduler, run_script, say, bmc_port=options.bmc_port)
    differences, not_found = compare(sites, found)
    for line in not_found:
        say(f"proofmark: {line}")
    for difference in differences:
        print_line(str(difference))
    print_line(f"differences: {len(differences)}")
    return DIFFERENT if differences else 0


def _print_fabric(file: Path, names: Sequence[str]) -> int:
    """Print the ``fabric`` of a partition's facts."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise bad_input(file, "", error.strerror or "unreadable", "a readable file") from None
    levels = fabric_levels(text, file, names)
    top = list(levels)[-1]
    near = [{"name": name, "switches": levels[name]} for name in levels if name != top]
    if adapters := unnamed_adapters(text):
        listed = "; ".join(f"{name} ({words})" for name, words in adapters.items())
        say(f"{file}: adapters that name no host, and are in no level: {listed}")
    if not near:
        say(f"{file}: one switch has all nodes; there is no level below {top}")
    facts = {"fabric": {"levels": near, "top": top, "source": f"{file.name} of the site"}}
    print_text(literal_yaml(facts).removesuffix("\n"))
    return 0


def _declared_scheduler(sites: list[Site]) -> str:
    """Return the scheduler of the partitions, ``none`` if no listing of its nodes exists."""
    name = sites[0].partition.scheduler
    return name if name in LISTINGS.names() else NONE


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``init`` to `parser`."""
    note = "a new folder, inventory/<site>"
    parser.add_argument("site", metavar="SITE", nargs="?", type=Path, help=note)
    parser.add_argument(
        "--from-node",
        metavar="NODE",
        action="append",
        help="a node to read, by ssh if it is not this machine; once for each kind of node",
    )
    note = "its nodes are listed (default: the scheduler whose commands are installed)"
    parser.add_argument("--scheduler", default="", help=note)
    note = "compare the inventory with the machine; write nothing; exit code 1 if they differ"
    flag(parser, "--diff", note)
    note = "read the node with sudo: memory modules and BMC need root"
    parser.add_argument("-b", "--become", action="store_true", help=note)
    parser.add_argument(
        "--bmc-port", type=whole(1, 65535), default=443, help="of the BMCs (default: 443)"
    )
    note = (
        "print the fabric of a partition from a topology.conf, a topology.yaml or the output of "
        "ibnetdiscover; write nothing"
    )
    parser.add_argument("--fabric", metavar="FILE", type=Path, help=note)
    note = "with --fabric: names of the levels, the nearest level first"
    parser.add_argument("--levels", metavar="NAMES", default="", help=note)


COMMANDS = {
    "init": Command(
        init,
        "init inventory/mysite --from-node node001 --scheduler slurm",
        arguments,
        traced=False,
        uses=(
            ArgumentUse("--levels", beside="--fabric"),
            ArgumentUse(
                "SITE --from-node --scheduler --diff --become --bmc-port", without="--fabric"
            ),
        ),
    )
}
