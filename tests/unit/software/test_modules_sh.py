"""modules.sh prints what modules change, and no secret."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.folders import ROOT

from proofmark.common.processes import NO_SECRET, SECRET
from proofmark.site.partition import Preinstalled
from proofmark.software.installed import module_variables, preinstalled

SCRIPT = ROOT / "roles/provision/files/modules.sh"
MODULES = r"""
unset BASH_ENV # the real module tool of this machine
echo "welcome to the site"
module() {
    case $1 in
    is-loaded) [ "$2" = "$LOADED" ] ;;
    load)
        echo "loading $2"
        [ "$2" != missing ] || return 1
        [ "$2" = lost ] || export LOADED=$2
        export PATH="/opt/mpi/bin:$PATH"
        export MPI_HOME=/opt/mpi
        export LINES_OF_TEXT="first
second=2
PATH=/third"
        export SITE_API_TOKEN=hush LICENSE_KEY=hush UCX_IB_PKEY=0x8001
        export SEEN_BY_MODULE="${PROOFMARK_BMC_PASSWORD-}${MY_SECRET-}"
        cd /usr ;;
    esac
}
"""


def loaded(
    home: Path, *modules: str, profile: str = MODULES, **variables: str
) -> subprocess.CompletedProcess[str]:
    home.mkdir(exist_ok=True)
    (home / ".bash_profile").write_text(profile)
    environment = {"PATH": os.environ["PATH"], "HOME": f"{home}", **variables}
    return subprocess.run(
        ["sh", SCRIPT, *modules], env=environment, capture_output=True, text=True, check=False
    )


def test_only_what_the_modules_change_is_printed(tmp_path: Path) -> None:
    done = loaded(tmp_path, "mpi", KEPT="as it was", ODD="a=b")
    assert (done.returncode, done.stderr) == (0, "")
    variables, _ = module_variables(done.stdout)
    assert variables.pop("PATH").startswith("/opt/mpi/bin:")
    assert variables == {
        "LOADED": "mpi",
        "MPI_HOME": "/opt/mpi",
        "LINES_OF_TEXT": "first\nsecond=2\nPATH=/third",
        "UCX_IB_PKEY": "0x8001",
        "SEEN_BY_MODULE": "",
    }


@pytest.mark.fault("secret-of-module")
def test_no_secret_reaches_the_modules_or_the_output(tmp_path: Path) -> None:
    """The control is the test above: all else is printed."""
    done = loaded(tmp_path, "mpi", PROOFMARK_BMC_PASSWORD="hunter2", MY_SECRET="hunter2")
    assert done.returncode == 0
    assert "hush" not in done.stdout
    assert "hunter2" not in done.stdout
    variables, secrets = module_variables(done.stdout)
    assert sorted(secrets) == ["LICENSE_KEY", "SITE_API_TOKEN"]
    assert variables["SEEN_BY_MODULE"] == ""


@pytest.mark.fault("secret-of-module")
def test_a_secret_of_a_module_is_a_finding_unless_the_inventory_sets_it() -> None:
    output = {"hpl": "set A=1\nset OLD_TOKEN=hush\nsecret SITE_TOKEN\n"}
    given: dict[str, str]
    for given, named in (({}, "OLD_TOKEN, SITE_TOKEN"), ({"SITE_TOKEN": "mine"}, "OLD_TOKEN")):
        entry = Preinstalled(prefix="/opt/hpl", version="2.3", modules=["hpl"], environment=given)
        package = preinstalled({"hpl": entry}, {"hpl": {"xhpl"}}, output).packages["hpl"]
        assert package.environment == {"A": "1", **given}
        (finding,) = package.findings
        assert f"its modules set {named}. The values are not stored" in finding
    full = Preinstalled(prefix="/", version="1", environment={"OLD_TOKEN": "a", "SITE_TOKEN": "b"})
    assert preinstalled({"hpl": full}, {"hpl": ()}, output).packages["hpl"].findings == ()


@pytest.mark.parametrize("module", ["missing", "lost"])
def test_a_module_that_cannot_be_loaded_is_an_error(tmp_path: Path, module: str) -> None:
    done = loaded(tmp_path, module)
    assert done.returncode == 1
    assert module == "missing" or "module lost was not loaded" in done.stderr


def test_a_node_without_modules_is_named(tmp_path: Path) -> None:
    done = loaded(tmp_path, "mpi", profile="unset BASH_ENV; unset -f module\n")
    assert done.returncode == 1
    assert f"{os.uname().nodename}: the command module is missing" in done.stderr


def test_the_patterns_of_the_script_are_those_of_the_package() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    assert f"\nsecret='{SECRET}'\n" in text
    assert f"\nplain='{NO_SECRET}'\n" in text


@given(st.dictionaries(st.from_regex(r"\AX[A-Z_]{0,8}\Z"), st.text()))
def test_every_value_comes_back(variables: dict[str, str]) -> None:
    plain = {name: value.replace("\x01", "") for name, value in variables.items()}
    kept, secrets = module_variables(
        "".join(f"set {name}={value.replace(chr(10), chr(1))}\n" for name, value in plain.items())
    )
    assert {**kept, **{name: plain[name] for name in secrets}} == plain
