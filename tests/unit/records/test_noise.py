"""Steps beside real processes that take their CPUs, and the decision on recorded samples."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import judged, seal
from tests.fixtures.hogs import DISTURB, SAMPLED, SPIN, hogs
from tests.fixtures.kit import (
    LIMIT,
    OUTPUT,
    Kit,
    carried_out,
    execution,
    left_behind,
    steps_of,
    until,
)
from tests.folders import ROOT
from tests.processes import running

from proofmark.cases.case import Undisturbed
from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute
from proofmark.jobs.step_script import THRESHOLDS
from proofmark.judge.results import Result
from proofmark.records.disturbance import noise_reason
from proofmark.runs.attempts import ReadOnce
from proofmark.runs.run import Run
from proofmark.runs.samples import NodeNoise, Other, read_noise

BLOCK = "mkfifo fifo; (sleep 2; echo >fifo) & read -r _ <fifo; rm fifo"
"""The program waits for input."""

BUSY = SAMPLED + SPIN.format(seconds=2)
"""The program needs its CPU while the sampler runs, however late that starts."""

QUIET: dict[str, Any] = {
    "host": "n1", "seconds": 10.0, "rank_seconds": 10.0, "cpus": 2, "threads": 2, "samples": 14,
    "ranks_s": 19.6, "others_s": 0.2, "steal_s": 0.1, "worst_steal_s": 0.06, "delay_s": 0.2,
    "worst_delay_s": 0.15, "burst": 0.05, "burst_others": 0.03, "cpu_pressure_s": 0.1,
    "io_pressure_s": 0.0, "mhz_least": 2596, "mhz_most": 2596,
    "others": [{"name": "sshd", "seconds": 0.1}],
}  # fmt: skip
"""The samples of a node without a disturbance."""

GOT = "disturbed: the ranks got 50 % of their CPUs; "

SHARES = ("max_steal", "max_others", "max_delay", "max_burst")


def conditions(least_seconds: float = 0.5, **shares: float) -> Undisturbed:
    """Return conditions with other thresholds than those of the kit."""
    made = Undisturbed(least_seconds=least_seconds)
    vars(made).update(shares)
    return made


LIMITS = conditions(16, **dict.fromkeys(SHARES, 0.25))

DELAY = "a thread waited 50 % of the time, more than 25 %"

HOUR = {"least_seconds": 3600}
"""Only `DISTURB` disturbs such a case."""

BURST = "a thread waited 50 % of a second, more than 25 %"

OTHERS = "others used 27 % of these CPUs, more than 25 %"

STEAL = "a hypervisor withheld 27 % of a CPU, more than 25 %"


def staged(kit: Kit, program: str, software: Mapping[str, Any] | None = None, **case: Any) -> Run:
    kit.program(f"{program}\n{OUTPUT}")
    # The default is half a second. On a loaded machine the sampler can start later than that.
    undisturbed = {"least_seconds": 0.05}
    usual = {"sweep": {"size": 1}, "launch": "threads", "references": [LIMIT]}
    kit.case(**{**usual, "undisturbed": undisturbed, **case})
    return kit.run(kit.software(**(software or {})))


def measured(run: Run) -> Result:
    execute(run, "none", lambda line: None)
    (result,) = judged(run).results
    return result


def once(run: Run) -> tuple[Result, NodeNoise]:
    """Run the only step of `run` once, without a job; return its result and the first node."""
    (step,) = steps_of(run)
    subprocess.run(["sh", str(step / "run.sh")], check=True)
    (node, *_) = read_noise(ReadOnce(str(execution(step))))
    (result,) = judged(run).results
    return result, node


def sampled_s(step: Path) -> float:
    """Return the seconds that the sampler of `step` has reported."""
    for sums in step.glob("unfinished-*/noise/*/sums"):
        text = sums.read_text()
        # The sampler replaces the file with one write, and the file is empty before it.
        return float(json.loads(text)["seconds"]) if text else 0
    return 0


def executions(run: Run) -> list[str]:
    (step,) = steps_of(run)
    return sorted(path.name for path in step.iterdir() if path.is_dir())


class TestHogs:
    @pytest.mark.fault("cpu-used-by-others")
    def test_a_process_on_the_cpu_of_the_rank_makes_the_figure_invalid(self, kit: Kit) -> None:
        run = staged(kit, BUSY)
        with hogs():
            result, node = once(run)
        assert result.verdict == "INVALID"
        assert result.reason.startswith("disturbed: the ranks got ")
        assert "; other processes: " in result.reason
        assert "sh (" in result.reason.partition("other processes: ")[2]
        assert node.share < 0.75
        assert node.worst_delay_s > 0.25 * node.rank_seconds

    def test_a_waiting_rank_is_not_disturbed(self, kit: Kit) -> None:
        """Control: the same process runs on the CPU, but the rank does not need it."""
        run = staged(kit, BLOCK)
        with hogs():
            result, node = once(run)
        assert (result.verdict, result.reason) == (
            "PASS", "2 × the contract figure (50 MB/s) is at least 1"
        )  # fmt: skip
        assert node.share < 0.5

    @pytest.mark.fault("noise-burst")
    def test_a_short_burst_in_a_long_step_is_found(self, kit: Kit) -> None:
        """The burst begins after the first sums of the sampler, and ends after two further seconds.

        These are seconds that the sampler saw: where a sample is expensive, it takes few of them.
        """
        over = kit.folder / "over"
        # On a loaded machine two seconds of samples take minutes: the usual limit ended the step.
        run = staged(kit, f"while [ ! -e {over} ]; do :; done", timeout=1800)
        (step,) = steps_of(run)
        with running(subprocess.Popen(["sh", str(step / "run.sh")])) as process:
            until(lambda: sampled_s(step) > 0)
            begun_s = sampled_s(step)
            with hogs(4):
                until(lambda: sampled_s(step) > begun_s + 2, 1500)
            over.touch()
            process.wait(300)
        (node,) = read_noise(ReadOnce(str(execution(step))))
        assert node.burst > 0.5
        (result,) = judged(run).results
        assert result.verdict == "INVALID"
        assert " % of a second, more than 50 %" in result.reason

    @pytest.mark.root
    @pytest.mark.fault("noise-outside")
    def test_a_process_outside_of_the_namespace_is_not_named_after_one_inside(
        self, kit: Kit
    ) -> None:
        """In a container only the processes in it have names."""
        run = staged(kit, BUSY)
        (step,) = steps_of(run)
        inside = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        with hogs():
            subprocess.run([*inside, "sh", str(step / "run.sh")], check=True)
        (result,) = judged(run).results
        assert result.verdict == "INVALID"
        assert "; other processes: processes that the kit does not see, " in result.reason

    @pytest.mark.fault("noise-of-starter")
    def test_the_process_that_started_the_step_does_not_disturb_it(self, kit: Kit) -> None:
        """It is the controller of the kit, which a repeat would meet again."""
        (step,) = steps_of(staged(kit, BUSY, undisturbed=HOUR))
        starter = 'sh "$0" & while kill -0 "$!" 2>/dev/null; do :; done'
        bound = ["taskset", "--cpu-list", "0", "sh", "-c", starter, str(step / "run.sh")]
        with running(subprocess.Popen(bound)) as process:
            assert process.wait(300) == 0
        (node, *_) = read_noise(ReadOnce(str(execution(step))))
        # The two share the CPU. On a loaded machine others use it too, and are named.
        assert node.share < 0.95
        assert process.pid not in {other.pid for other in node.others}

    def test_the_busiest_other_process_is_known_by_user_number_and_command(self, kit: Kit) -> None:
        run = staged(kit, BUSY)
        with hogs():
            _, node = once(run)
        (found,) = (each for each in node.others if each.name == "sh")
        assert found.pid > 1
        assert found.user == pwd.getpwuid(os.geteuid()).pw_name
        assert found.command == "sh"  # what follows -c may be a secret

    @pytest.mark.skipif(not shutil.which("mpirun.openmpi"), reason="needs Open MPI")
    @pytest.mark.fault("noise-preempted-rank")
    def test_a_rank_is_preempted_while_its_peer_spins(self, kit: Kit) -> None:
        run = staged(
            kit,
            BUSY,
            {"launcher": "openmpi", "prefix": "/usr"},
            launch="mpi",
            sweep={"size": 1, "ranks": 2, "placement": "close"},
        )
        with hogs(2, cpu=1):
            result, node = once(run)
        assert node.cpus == 2
        assert node.worst_delay_s > 0.4 * node.rank_seconds
        assert result.verdict == "INVALID"
        assert "a thread waited " in result.reason

    @pytest.mark.fault("noise-repeat")
    def test_a_disturbed_step_is_repeated_and_the_repeat_counts(self, kit: Kit) -> None:
        first = f'{DISTURB}echo "size 1"; echo "rate 10"; echo END; exit'
        run = staged(kit, f"if mkdir {kit.folder}/first; then {first}; fi", undisturbed=HOUR)
        result = measured(run)
        assert (result.verdict, result.values) == ("PASS", (100,))
        assert executions(run) == ["execution-1", "execution-2"]
        assert (execution(steps_of(run)[0]) / "disturbed").read_text().split()[1:] != []
        first_one, second = judged(run).results.aggregates.records.executions
        assert first_one.disturbed.startswith("disturbed: the ranks got ")
        assert second.disturbed == ""

    @pytest.mark.fault("noise-emulated")
    def test_an_emulated_record_stays_valid(self, kit: Kit) -> None:
        kit.program(f"{DISTURB}{OUTPUT}")
        kit.case(sweep={"size": 1}, launch="threads")
        run = kit.run(site=kit.site(origin="emulated"))
        result = measured(run)
        assert (result.record.valid, result.values) == (True, (100,))
        assert executions(run) == ["execution-1"]
        (about,) = judged(run).results.aggregates.records.executions
        assert about.disturbed.startswith("disturbed: the ranks got ")

    @pytest.mark.root
    @pytest.mark.fault("cpu-stolen")
    def test_a_hypervisor_withholds_cpu_time(self, kit: Kit) -> None:
        """The program adds to the steal time of CPU 0 in /proc/stat until the sampler has seen it.

        On a loaded machine the sampler begins late and reads a few times only. So the steal time
        grows faster than time: each two readings differ. The file is written in place.
        """
        stat = kit.folder / "stat"
        stat.write_text(f"cpu0 0 0 0 0 0 0 0 {0:015} 0 0\n")
        steal = f'echo "cpu0 0 0 0 0 0 0 0 $(($(date +%s%N) / 10000)) 0 0" 1<>{stat}'
        sums = 'cat "${BINDING%binding}"noise/*/sums 2>/dev/null'
        seen = f"""{sums} | grep -q 'worst_steal_s": [1-9]'"""
        run = staged(kit, f"until {steal}; {seen}; do sleep 0.05; done")
        (step,) = steps_of(run)
        bound = 'mount --bind "$0" /proc/stat && sh "$1"'
        script = step / "run.sh"
        subprocess.run(["unshare", "--mount", "sh", "-c", bound, stat, script], check=True)
        (result,) = judged(run).results
        assert result.verdict == "INVALID"
        assert "; a hypervisor withheld " in result.reason
        assert result.reason.partition("more than 5 %")[1]


class TestNodes:
    """A step that each of three nodes measures alone, in one job."""

    def run(self, kit: Kit, monkeypatch: pytest.MonkeyPatch, program: str) -> tuple[Run, Path]:
        """Return a run of n1, n2 and n3. The job starts the script on one node after the other."""
        monkeypatch.setattr(
            "proofmark.machine.schedulers.none.NoScheduler.header", lambda self, request: []
        )
        monkeypatch.setattr(
            "proofmark.machine.schedulers.none.NoScheduler.fan_out",
            lambda self, request: [
                'on_all() { for node in n1 n2 n3; do unshare --uts sh -c \'hostname "$0"; '
                'exec sh "$@"\' "$node" "$@" || return; done; }'
            ],
        )
        kit.program(program)
        use = {"scope": "each-node", "sweep": {"size": 1}}
        kit.case(suites={"quick": use}, launch="threads", undisturbed=HOUR)
        run = kit.run(site=kit.site(hosts=("n1", "n2", "n3")))
        (job,) = (run.folder / "workdir/jobs").glob("*/job.sh")
        return run, job

    def counts(self, run: Run) -> list[int]:
        (step,) = steps_of(run)
        return [len(list((step / name).glob("execution-*"))) for name in ("n1", "n2", "n3")]

    @pytest.mark.root
    @pytest.mark.fault("noise-one-node")
    def test_only_the_disturbed_node_repeats(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program = f'if [ "$(uname -n)" = n2 ]; then {DISTURB}fi\n{OUTPUT}'
        run, job = self.run(kit, monkeypatch, program)
        subprocess.run(["sh", str(job)], check=True)
        assert self.counts(run) == [1, 3, 1]

    @pytest.mark.root
    def test_no_node_repeats_an_undisturbed_step(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Control: nothing is injected."""
        run, job = self.run(kit, monkeypatch, OUTPUT)
        subprocess.run(["sh", str(job)], check=True)
        assert self.counts(run) == [1, 1, 1]


class TestSampler:
    """Ranks that start where the script of their step does not run: the first starts a sampler."""

    def sums(self, kit: Kit, shell: str, host: str, *prefix: str) -> dict[str, Any]:
        """Return the entry of `host` after the command `shell`, whose `$0` is run.sh."""
        (step,) = steps_of(staged(kit, ""))
        (step / "out/binding").mkdir(parents=True)
        (step / "out/noise").mkdir()
        environment = {**os.environ, "BINDING": f"{step}/out/binding"}
        command = [*prefix, "sh", "-c", shell, str(step / "run.sh")]
        subprocess.run(command, env=environment, check=True)
        assert left_behind(f"BINDING={step}/out/binding") == []
        entry: dict[str, Any] = json.loads((step / f"out/noise/{host}/sums").read_text())
        return entry

    @pytest.mark.root
    def test_the_first_rank_of_another_node_starts_a_sampler_there(self, kit: Kit) -> None:
        """Two ranks start in another UTS namespace; the sampler ends after them."""
        ranks = (
            'hostname other; sh "$0" --rank sleep 3 & '
            'PMI_RANK=1 exec sh "$0" --rank sh -c "sleep 2.5; wait"'
        )
        entry = self.sums(kit, ranks, "other", "unshare", "--uts")
        assert (entry["host"], entry["cpus"]) == ("other", len(os.sched_getaffinity(0)))
        assert entry["threads"] >= 2
        assert 1 < entry["seconds"] < 60

    @pytest.mark.fault("noise-rank-rebound")
    def test_the_cpus_of_a_rank_are_those_of_its_start(self, kit: Kit) -> None:
        """The program binds itself to one CPU for a second, as hwloc does in MPI_Init."""
        (cpu, *_) = os.sched_getaffinity(0)
        program = f"taskset -cp {cpu} \\$\\$ && sleep 1"
        entry = self.sums(kit, f'exec sh "$0" --rank sh -c "{program}"', os.uname().nodename)
        assert entry["cpus"] == len(os.sched_getaffinity(0))

    def test_the_cpus_of_a_rank_that_stays_bound(self, kit: Kit) -> None:
        """Control: nothing is injected."""
        entry = self.sums(kit, 'exec sh "$0" --rank sleep 1', os.uname().nodename)
        assert entry["cpus"] == len(os.sched_getaffinity(0))


class TestFile:
    @pytest.mark.fault("noise-damaged")
    @pytest.mark.parametrize(
        "content", ["", "{}", "[1]", '[{"host": "n1"}]', json.dumps([{**QUIET, "ranks_s": -1}])]
    )
    def test_a_damaged_file_makes_the_figure_invalid(self, kit: Kit, content: str) -> None:
        run = carried_out(staged(kit, ":"))
        folder = execution(steps_of(run)[0])
        (folder / "noise.json").write_text(content)
        seal(folder)
        (result,) = judged(run).results
        assert result.verdict == "INVALID"
        assert result.reason.startswith("noise.json is damaged: ")

    @pytest.mark.fault("noise-changed")
    def test_a_changed_file_makes_the_figure_invalid(self, kit: Kit) -> None:
        run = carried_out(staged(kit, ":"))
        (execution(steps_of(run)[0]) / "noise.json").write_text(json.dumps([QUIET]))
        (result,) = judged(run).results
        assert (result.verdict, result.reason) == (
            "INVALID", "noise.json changed after the step ended"
        )  # fmt: skip

    def test_recorded_samples_of_a_quiet_node_are_judged(self, kit: Kit) -> None:
        """Control: nothing is injected."""
        run = carried_out(staged(kit, ":"))
        folder = execution(steps_of(run)[0])
        (folder / "noise.json").write_text(json.dumps([QUIET]))
        seal(folder)
        (result,) = judged(run).results
        assert result.verdict == "PASS"

    def test_an_unknown_threshold_is_refused(self, kit: Kit) -> None:
        kit.case(undisturbed={"max_other": 0.1})
        with pytest.raises(BadInput, match="max_other"):
            kit.benchmarks()


def node(**changes: Any) -> NodeNoise:
    entry = {**QUIET, **changes}
    fields = {name: entry[name] for name in NodeNoise._fields if name != "others"}
    others = tuple(Other(each["name"], each["seconds"]) for each in entry["others"])
    return NodeNoise(**fields, others=others)


class TestDecision:
    def test_a_quiet_node_is_undisturbed(self) -> None:
        assert noise_reason([node()] * 3, Undisturbed()) == ""

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"worst_steal_s": 1.0}, "a hypervisor withheld 10 % of a CPU, more than 5 %"),
            ({"others_s": 2.4}, "others used 12 % of these CPUs, more than 10 %"),
            (
                {"worst_delay_s": 3.0, "others_s": 1.6},
                "a thread waited 30 % of the time, more than 10 %",
            ),
            (
                {"burst": 0.7, "burst_others": 0.6},
                "a thread waited 70 % of a second, more than 50 %",
            ),
        ],
    )
    def test_each_cause_is_named(self, changes: dict[str, float], words: str) -> None:
        assert noise_reason([node(**changes)], Undisturbed()) == (
            f"disturbed: the ranks got 98 % of their CPUs; {words}; "
            "other processes: sshd (1 % of a CPU)"
        )

    @pytest.mark.parametrize(
        "changes",
        [
            {"ranks_s": 2.0, "others_s": 9.0, "worst_delay_s": 0.5},  # waits for I/O
            {"worst_delay_s": 5.0},  # ranks that share a CPU delay each other
            {"burst": 0.9},
            {"ranks_s": 0.0},
            {"seconds": 0.2, "rank_seconds": 0.2},  # too short for 1/100 s
        ],
    )
    def test_what_disturbs_nothing(self, changes: dict[str, float]) -> None:
        assert noise_reason([node(**changes)], Undisturbed()) == ""

    def test_one_disturbed_node_disturbs_the_step_and_is_named(self) -> None:
        reason = noise_reason(
            [node(), node(host="n2", others_s=4.0), node(host="n3")], Undisturbed()
        )
        assert reason.startswith("disturbed: n2: the ranks got 98 % of their CPUs; ")
        assert "n1" not in reason

    @given(
        st.lists(
            st.fixed_dictionaries(
                {
                    "host": st.sampled_from(["n1", "node-2", "a.b"]),
                    "cpus": st.integers(1, 272),
                    **{
                        name: st.floats(0, 100).map(lambda value: round(value, 2))
                        for name in (
                            "seconds", "rank_seconds", "ranks_s", "others_s", "steal_s",
                            "worst_steal_s", "worst_delay_s", "burst", "burst_others",
                        )
                    },
                }
            ),
            min_size=1,
            max_size=30,
        ),
        st.sampled_from([{}, {"max_steal": 0.5}, {"max_others": 0.9, "max_delay": 0.7}]),
    )  # fmt: skip
    def test_the_script_and_the_judge_agree(
        self, entries: list[dict[str, Any]], limits: dict[str, float]
    ) -> None:
        undisturbed = conditions(**limits)
        lines = "\n,".join(json.dumps({**QUIET, **entry}) for entry in entries)
        script = ROOT / "analysis/proofmark/jobs/shell/noise.sh"
        program = script.read_text().partition("DISTURBED='")[2].partition("}'\n")[0] + "}"
        options = [f"--assign={name}={getattr(undisturbed, name):g}" for name in THRESHOLDS]
        command = ["awk", *(option.replace("--assign=", "-v") for option in options), program]
        environment = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(
            command, input=f"[\n{lines}\n]\n", env=environment, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        by_judge = [e["host"] for e in entries if noise_reason([node(**e)], undisturbed)]
        assert [line.split()[0] for line in done.stdout.splitlines()] == by_judge


def noise(**changes: Any) -> NodeNoise:
    """Return a node that ran 16 s on four CPUs, whose ranks got half of their CPUs."""
    fields: dict[str, Any] = {
        "host": "n1",
        "seconds": 16.0,
        "rank_seconds": 8.0,
        "cpus": 4,
        "ranks_s": 16.0,
        "others_s": 0.0,
        "steal_s": 0.0,
        "worst_steal_s": 0.0,
        "worst_delay_s": 0.0,
        "burst": 0.0,
        "burst_others": 0.0,
        "others": (),
    }
    return NodeNoise(**{**fields, **changes})


def reason(*nodes: NodeNoise) -> str:
    return noise_reason(nodes, LIMITS)


class TestThresholds:
    @pytest.mark.parametrize(("steal", "cause"), [(4.0, ""), (4.25, STEAL), (64.0, "400 %")])
    def test_time_withheld_by_a_hypervisor_counts_above_its_share_of_the_step(
        self, steal: float, cause: str
    ) -> None:
        found = reason(noise(worst_steal_s=steal))
        assert cause in found
        assert bool(found) is bool(cause)

    @pytest.mark.parametrize(("others", "cause"), [(16.0, ""), (17.0, GOT + OTHERS)])
    def test_time_of_others_counts_above_its_share_of_all_cpus(
        self, others: float, cause: str
    ) -> None:
        assert reason(noise(others_s=others)) == cause

    @pytest.mark.parametrize(("ranks", "disturbed"), [(15.9, False), (16.0, True), (32.0, True)])
    def test_others_count_if_the_ranks_use_half_of_their_cpus(
        self, ranks: float, disturbed: bool
    ) -> None:
        assert (OTHERS in reason(noise(others_s=17.0, ranks_s=ranks))) is disturbed

    @pytest.mark.parametrize(("delay", "disturbed"), [(2.0, False), (2.01, True)])
    def test_a_delay_counts_above_its_share_of_the_time_of_the_ranks(
        self, delay: float, disturbed: bool
    ) -> None:
        found = reason(noise(worst_delay_s=delay, steal_s=delay))
        assert ("a thread waited 25 % of the time, more than 25 %" in found) is disturbed

    @pytest.mark.parametrize(
        ("others", "steal", "disturbed"),
        [(1.0, 1.0, True), (2.0, 0.0, True), (0.0, 2.0, True), (1.0, 0.9, False)],
    )
    def test_others_and_a_hypervisor_explain_half_of_a_delay_together(
        self, others: float, steal: float, disturbed: bool
    ) -> None:
        found = reason(noise(worst_delay_s=4.0, others_s=others, steal_s=steal))
        assert found == (GOT + DELAY if disturbed else "")

    def test_a_delay_before_the_first_rank_ran_is_the_whole_time(self) -> None:
        found = reason(noise(rank_seconds=0.0, worst_delay_s=1.0, others_s=1.0))
        assert "a thread waited 100 % of the time, more than 25 %" in found

    @pytest.mark.fault("noise-of-no-time")
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"worst_steal_s": 1.0}, "a hypervisor withheld 100 % of a CPU, more than 5 %"),
            (
                {"others_s": 1.0, "others": (Other("a", 1.0),)},
                "others used 100 % of these CPUs, more than 10 %; "
                "other processes: a (100 % of a CPU)",
            ),
        ],
    )
    def test_samples_of_no_time_are_judged(self, changes: dict[str, Any], words: str) -> None:
        found = noise_reason([noise(seconds=0.0, **changes)], Undisturbed(least_seconds=0))
        assert found == GOT + words

    def test_quiet_samples_of_no_time(self) -> None:
        """Control: no time was lost."""
        assert noise_reason([noise(seconds=0.0)], Undisturbed(least_seconds=0)) == ""

    @pytest.mark.parametrize(("burst", "disturbed"), [(0.25, False), (0.26, True)])
    def test_a_burst_counts_above_its_share_of_a_second(
        self, burst: float, disturbed: bool
    ) -> None:
        assert bool(reason(noise(burst=burst, burst_others=1.0))) is disturbed

    @pytest.mark.parametrize(("others", "disturbed"), [(0.25, True), (0.24, False)])
    def test_others_explain_half_of_a_burst(self, others: float, disturbed: bool) -> None:
        found = reason(noise(burst=0.5, burst_others=others))
        assert found == (GOT + BURST if disturbed else "")

    @pytest.mark.parametrize(("seconds", "disturbed"), [(16.0, True), (15.99, False)])
    def test_a_step_is_judged_from_its_least_seconds_on(
        self, seconds: float, disturbed: bool
    ) -> None:
        assert bool(reason(noise(seconds=seconds, worst_steal_s=8.0))) is disturbed

    def test_all_causes_are_named(self) -> None:
        found = reason(
            noise(worst_steal_s=4.3, others_s=17.0, worst_delay_s=4.0, burst=0.5, burst_others=1.0)
        )
        assert found == f"{GOT}{STEAL}; {OTHERS}; {DELAY}; {BURST}"


class TestWords:
    def test_the_three_busiest_other_processes_are_named(self) -> None:
        others = (Other("a", 16.0), Other("b", 8.0), Other("c", 4.0), Other("d", 2.0))
        assert reason(noise(others_s=17.0, others=others)) == (
            f"{GOT}{OTHERS}; other processes: a (100 % of a CPU); b (50 % of a CPU); "
            "c (25 % of a CPU)"
        )

    @pytest.mark.parametrize(
        ("count", "more"), [(2, ""), (3, ""), (4, "; and 1 more node"), (6, "; and 3 more nodes")]
    )
    def test_the_first_three_disturbed_nodes_are_named(self, count: int, more: str) -> None:
        nodes = [noise(host=f"n{number}", others_s=17.0) for number in range(count)]
        text = "the ranks got 50 % of their CPUs; " + OTHERS
        named = "; ".join(f"n{number}: {text}" for number in range(min(count, 3)))
        assert reason(*nodes, noise(host="quiet")) == f"disturbed: {named}{more}"

    def test_the_only_node_is_not_named(self) -> None:
        assert reason(noise(others_s=17.0)) == GOT + OTHERS

    def test_the_disturbed_one_of_two_nodes_is_named(self) -> None:
        assert reason(noise(), noise(host="n2", others_s=17.0)) == (
            f"disturbed: n2: the ranks got 50 % of their CPUs; {OTHERS}"
        )

    def test_no_node_is_no_disturbance(self) -> None:
        assert reason() == ""
