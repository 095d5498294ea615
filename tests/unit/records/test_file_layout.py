"""A step with a layout of its files: it is set, recorded and verified. The tools are emulated."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.stripes import write_tool
from tests.fixtures.kit import OUTPUT, Kit, execution, kit_with, steps_of

from proofmark.jobs.step_script import layout_functions
from proofmark.plan.file_layout import FileLayout
from proofmark.records.columns import Record
from proofmark.records.execution_checks import layout_error
from proofmark.runs.run import Run
from proofmark.site.file_systems import Scratch, kinds
from proofmark.site.inventory import Site

WRITING = f'echo "a file" >"$SCRATCH/one file"; {OUTPUT}'
SHELLS = {"dash": ["/usr/bin/dash"], "busybox": ["/usr/bin/busybox", "sh"]}


def site_with_scratch(kit: Kit, kind: str | None, path: str = "scratch") -> Site:
    """Return the site of `kit` with a scratch of the type `kind`."""
    folder = kit.folder / path
    folder.mkdir(exist_ok=True)
    return kit.site(scratch=Scratch(path=str(folder), type=kind))


def run_steps(
    kit: Kit, site: Site, tools: Path | None, shell: Sequence[str] = ("dash",)
) -> tuple[Run, list[Record]]:
    """Run all steps with `tools` in the search path; return the run and its records."""
    run = kit.run(site=site)
    path = os.environ["PATH"] if tools is None else f"{tools}:{os.environ['PATH']}"
    for step in steps_of(run):
        subprocess.run(
            [*shell, str(step / "run.sh")],
            check=False,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            timeout=300,
        )
    return run, list(kit.records(run, site))


kit = kit_with(program=WRITING)


def sweep(**axes: Any) -> dict[str, Any]:
    return {"sweep": {"size": 1, **axes}, "cost": {"seconds": 1, "bytes": 7}}


STRIPES = {"stripe_count": 4, "stripe_bytes": 1 << 20}
TOOLS = {"lfs": "lustre", "beegfs-ctl": "beegfs", "beegfs": "beegfs"}


class TestStripes:
    @pytest.mark.parametrize("tool", sorted(TOOLS))
    def test_the_folder_of_a_step_gets_its_layout(self, kit: Kit, tool: str) -> None:
        kit.case(**sweep(**STRIPES))
        site = site_with_scratch(kit, TOOLS[tool])
        run, (record,) = run_steps(kit, site, write_tool(kit.folder / "tools", tool))
        assert record.valid, record.reason
        assert record.parameters == {"size": 1, **STRIPES}
        (step,) = steps_of(run)
        printed = (execution(step) / "layout.txt").read_text(encoding="utf-8")
        assert "lmm_stripe_count:  4" in printed or "desired: 4; actual: 4" in printed
        assert "layout.txt" in (execution(step) / "outputs.sha256").read_text(encoding="utf-8")

    @pytest.mark.fault("layout-of-files-not-set")
    @pytest.mark.parametrize("shell", sorted(SHELLS))
    @pytest.mark.parametrize(
        ("how", "expected"),
        [
            ({}, ""),
            ({"ignores": True}, "files had the stripe_count 1, planned 4"),
            ({"targets": 2}, "files had the stripe_count 2, planned 4"),
            (None, "exit code 73: no lfs: the layout of files cannot be set"),
        ],
        ids=["control", "overridden", "too-few-targets", "no-tool"],
    )
    def test_files_with_another_layout_are_invalid(
        self, kit: Kit, shell: str, how: Mapping[str, Any] | None, expected: str
    ) -> None:
        kit.case(**sweep(**STRIPES))
        tools = None if how is None else write_tool(kit.folder / "tools", "lfs", **how)
        _, (record,) = run_steps(kit, site_with_scratch(kit, "lustre"), tools, SHELLS[shell])
        assert (record.reason or "").startswith(expected)
        assert record.valid is not bool(expected)

    @pytest.mark.fault("layout-of-files-not-set")
    def test_a_program_without_files_is_invalid(self, kit: Kit) -> None:
        kit.program()
        kit.case(**sweep(**STRIPES))
        _, (record,) = run_steps(
            kit, site_with_scratch(kit, "lustre"), write_tool(kit.folder / "tools", "lfs")
        )
        assert record.reason.startswith("layout.txt is missing or empty")

    @pytest.mark.fault("layout-with-shell-words")
    @pytest.mark.parametrize("path", ["scratch", "'a b'; touch hacked & (c"])
    def test_the_path_is_data(self, kit: Kit, path: str) -> None:
        kit.case(**sweep(stripe_count=2))
        kit.program(f'cd "$SCRATCH" && echo 1 >"\\$(touch hacked)"; {OUTPUT}')
        site = site_with_scratch(kit, "lustre", path)
        _, (record,) = run_steps(kit, site, write_tool(kit.folder / "tools", "lfs"))
        assert record.valid, record.reason
        assert not list(kit.folder.rglob("hacked"))

    def test_the_value_default_keeps_the_layout(self, kit: Kit) -> None:
        kit.case(**sweep(stripe_count="default"))
        run, (record,) = run_steps(kit, site_with_scratch(kit, None), None)
        assert record.valid
        assert run.plan.steps() and all(step.layout is None for step in run.plan.steps())


def test_every_tool_is_found_by_its_own_name() -> None:
    """The functions of a type with two tools use the one that the node has."""
    lines = layout_functions(FileLayout(kind="beegfs", values={"stripe_count": 3}), "/s/a b")
    text = "\n".join(lines)
    assert "beegfs-ctl --setpattern --numtargets=3 '/s/a b'" in text
    assert "beegfs entry set --num-targets=3 '/s/a b'" in text
    assert text.count("elif command -v beegfs >/dev/null") == 2


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("lmm_stripe_count:  4\nlmm_stripe_count:  4\n", ""),
        ("lmm_stripe_count:  4\nlmm_stripe_count:  1\n", "files had the stripe_count 1, planned 4"),
        ("lfs getstripe: Permission denied\n", "layout.txt has no stripe_count: lfs getstripe:"),
        ("", "layout.txt is missing or empty"),
    ],
)
def test_what_the_tool_prints(text: str, error: str) -> None:
    layout = FileLayout(kind="lustre", values={"stripe_count": 4})
    assert layout_error(layout, text.encode()).startswith(error)
    assert bool(layout_error(layout, text.encode())) is bool(error)
    assert layout_error(None, b"") == ""


@pytest.mark.parametrize(("word", "value"), [("512k", 512 << 10), ("1M", 1 << 20), ("4096", 4096)])
def test_the_chunk_size_of_beegfs(word: str, value: int) -> None:
    text = f"+ Chunksize: {word}\n+ Number of storage targets: desired: 2; actual: 2\n".encode()
    assert kinds()["beegfs"].axes == ("stripe_count", "stripe_bytes")
    layout = FileLayout(kind="beegfs", values={"stripe_bytes": value, "stripe_count": 2})
    assert layout_error(layout, text) == ""
