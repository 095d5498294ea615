"""Names with domains in outputs: one node by a short and a full name, two by two domains."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from proofmark.packages.foreign.adoption_request import Names, nodes_of_outputs

Found = tuple[Mapping[str, tuple[str, str]], Mapping[str, Names]]
"""The contradictions, and the nodes of each output, by path."""
SITE = ".site.example"
FLEET = tuple(f"n{number:02d}" for number in range(1, 7))


def found(printed: Mapping[str, str], programs: Mapping[str, str] | None = None) -> Found:
    """Return the nodes of outputs whose paths begin with their node, by what each text prints."""
    named: dict[tuple[str, Names], Names] = {
        (path, ()): tuple(path.partition("/")[0].split()) for path in printed
    }
    texts: dict[tuple[str, Names], Names] = {
        (path, ()): tuple(text.split()) for path, text in printed.items()
    }
    of_path = programs or dict.fromkeys(printed, "stream")
    found = nodes_of_outputs(named, texts, (), {(path, ()): of_path[path] for path in printed})
    return found.contradicted, {path: nodes for (path, _), nodes in found.nodes.items()}


@pytest.mark.fault("adopted-path-names-other-nodes")
@pytest.mark.parametrize("domain", [SITE, ""], ids=["with a domain", "without a domain"])
def test_a_name_of_another_domain_is_another_node(domain: str) -> None:
    other = "n03.other.example"
    texts = {each: f"{each}{domain}" if each != "n03" else other for each in FLEET}
    contradicted, nodes = found(texts)
    assert nodes == {each: (each if each != "n03" else other,) for each in FLEET}
    assert contradicted == {"n03": ("n03", other)}


@pytest.mark.fault("adopted-path-names-other-nodes")
def test_a_node_of_another_domain_stays_apart_where_another_program_prints_its_domain() -> None:
    stream = {f"{each}/stream": each for each in FLEET}
    ior = {f"{each}/ior": f"{each}{SITE}" for each in FLEET} | {"n03/ior": "n03.other.example"}
    programs = {path: path.partition("/")[2] for path in (*stream, *ior)}
    contradicted, nodes = found({**stream, **ior}, programs)
    assert contradicted == {"n03/ior": ("n03", "n03.other.example")}
    assert nodes["n03/stream"] == ("n03",) != nodes["n03/ior"]


def test_programs_that_print_the_domain_or_not_have_the_same_nodes() -> None:
    """The control. Each program prints its own form, one of them for a single node."""
    stream = {f"{each}/stream": each for each in FLEET}
    for some in (FLEET, FLEET[:1]):
        ior = {f"{each}/ior": f"{each}{SITE}" for each in some}
        programs = {path: path.partition("/")[2] for path in (*stream, *ior)}
        contradicted, nodes = found({**stream, **ior}, programs)
        assert contradicted == {}
        assert nodes == {path: (path[:3],) for path in (*stream, *ior)}


def test_texts_alone_name_a_node_by_its_short_name_where_one_prints_it() -> None:
    texts = {f"/{each}{domain}": f"{each}{domain}" for each in FLEET for domain in ("", SITE)}
    assert found(texts)[1] == {path: (path[1:4],) for path in texts}
    alone = {f"/{each}": f"{each}{SITE}" for each in FLEET}
    assert found(alone)[1] == {path: (f"{path[1:]}{SITE}",) for path in alone}


def test_kinds_of_nodes_have_domains_of_their_own() -> None:
    printed = {each: f"{each}.cpu.example" for each in FLEET}
    printed |= {each: f"{each}.gpu.example" for each in ("g01", "g02")}
    assert found(printed)[0] == {}
