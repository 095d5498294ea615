"""The sh functions of a step that set and print the layout of its files."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from proofmark.plan.file_layout import FileLayout
from proofmark.site.file_systems import LayoutTool, kinds

OPTIONS = "{options}"


def layout_functions(layout: FileLayout, folder: str) -> list[str]:
    """Return the lines of ``set_layout`` and ``print_layout FILE``.

    Both use the first tool of the file system that the node has. Each word is quoted.

    Args:
        layout: the requested layout.
        folder: the scratch folder of the step.
    """

    def set_words(tool: LayoutTool) -> str:
        options = [
            word.replace("{value}", str(value))
            for axis, value in layout.values.items()
            for word in tool.options[axis]
        ]
        return shlex.join(_replaced(tool.set, {"{path}": [folder], OPTIONS: options}))

    def get_words(tool: LayoutTool) -> str:
        return " ".join('"$1"' if word == "{file}" else shlex.quote(word) for word in tool.get)

    tools = kinds()[layout.kind].steps
    return [
        *_function("set_layout", tools, set_words),
        *_function("print_layout", tools, get_words),
    ]


def _replaced(words: Sequence[str], values: Mapping[str, Sequence[str]]) -> list[str]:
    return [each for word in words for each in values.get(word, [word])]


def _function(
    name: str, tools: Sequence[LayoutTool], command: Callable[[LayoutTool], str]
) -> list[str]:
    programs = " or ".join(dict.fromkeys(tool.set[0] for tool in tools))
    return [
        f"{name}() {{",
        *(
            line
            for number, tool in enumerate(tools)
            for line in (
                f"{'el' if number else ''}if command -v {tool.set[0]} >/dev/null; then",
                command(tool),
            )
        ),
        "else",
        f'echo "no {programs}: the layout of files cannot be set" >&2',
        "return 127",
        "fi",
        "}",
    ]
