"""What a step takes from the software of its run: its program, environment and launcher."""

from __future__ import annotations

import json
from collections.abc import Mapping

from proofmark.cases.vocabulary import ALL_RAILS, RAIL
from proofmark.common.errors import bad_input, nearest
from proofmark.common.message import Message
from proofmark.jobs.launcher import LAUNCHERS
from proofmark.plan.plan import Job, Plan, Step
from proofmark.site.execution import LaunchSettings
from proofmark.site.rails import variables_of_rail
from proofmark.software.program import Program
from proofmark.software.software import Package, Software
from proofmark.software.target import target_requirements


def repeated_commands(plan: Plan, software: Software) -> dict[str, Message]:
    """Return the steps that repeat the command of another step of their job, with the reason.

    Two choices of a variant may have the same environment: if a BLAS selects the right kernel by
    default, "right" is the same as "as-installed".
    """
    firsts: dict[tuple[str, ...], Step] = {}
    reasons: dict[str, Message] = {}
    for group in plan.groups:
        for job in group.jobs:
            for step in (step for step in job.steps if step.variants):
                first = firsts.setdefault((job.id, *_command(step, software)), step)
                if first is not step:
                    same = ", ".join(
                        f"{variant} {choice} is {first.variants[variant]}"
                        for variant, choice in step.variants.items()
                        if choice != first.variants[variant]
                    )
                    reasons[step.id] = Message("same-command", step=first.id, same=same)
    return reasons


def _command(step: Step, software: Software) -> tuple[str, str]:
    """Return the step without its id and its variants, and the environment of its variants."""
    parameters = {
        name: value for name, value in step.parameters.items() if name not in step.variants
    }
    plain = step.model_copy(update={"id": "", "variants": {}, "parameters": parameters})
    environment = environment_of_step(step, package_of_step(step, software))
    return plain.model_dump_json(), json.dumps(environment, sort_keys=True)


def processor_needs(job: Job, software: Software) -> str:
    """Return the requirements of the programs of `job` for processors: one line for each target.

    Raises:
        BadInput: archspec has no target of this name.
    """
    targets = {package_of_step(step, software).target for step in job.steps} - {""}
    return "".join(f"{target_requirements(target).line()}\n" for target in sorted(targets))


def launcher_of_step(
    step: Step, package: Package, launch_settings: LaunchSettings, replaced: Mapping[str, str]
) -> str:
    """Return the name of the launcher: that of the site, or that of the MPI.

    Args:
        step: the step.
        package: its package.
        launch_settings: those of the site.
        replaced: the launchers of the scheduler instead of those of an MPI.

    Raises:
        BadInput: the ranks have no launcher: all of them would be one process.
    """
    if step.launch != "mpi":
        return "plain"
    if not launch_settings.launcher and package.launcher == "plain" and step.ranks > 1:
        found = f"no launcher for {step.ranks} ranks: the MPI of {step.package} is not recognized"
        names = ", ".join(name for name in LAUNCHERS.names() if name != "plain")
        raise bad_input("software.json", step.id, found, f"partition.launch.launcher: {names}")
    return launch_settings.launcher or replaced.get(package.launcher, package.launcher)


def package_of_step(step: Step, software: Software) -> Package:
    """Return the package of `step`.

    Raises:
        BadInput: `software` lacks it.
    """
    if step.package not in software.packages:
        hint = nearest(step.package, software.packages)
        found = f"no package {step.package!r}{hint}"
        raise bad_input("software.json", step.id, found, ", ".join(software.packages) or "packages")
    return software.packages[step.package]


def program_of_step(step: Step, package: Package) -> Program:
    """Return the program of `step`.

    Raises:
        BadInput: `package` lacks it.
    """
    if step.program not in package.programs:
        hint = nearest(step.program, package.programs)
        found = f"no program {step.program!r} in {step.package}{hint}"
        raise bad_input("software.json", step.id, found, ", ".join(package.programs))
    return package.programs[step.program]


def environment_of_step(step: Step, package: Package) -> dict[str, str]:
    """Return the variables of the package, the site, the variants and the case.

    A later one overrides an earlier one.

    A package whose BLAS is not recognised, for example a static one, has no variants: then all
    choices are those of the package as it is.

    Raises:
        BadInput: the package has other choices of a variant.
    """
    merged = package.environment | package.run_environment
    for variant, choice in step.variants.items():
        known = package.variants.get(variant)
        if known is None:
            continue
        if choice not in known:
            hint = nearest(choice, known)
            found = f"{variant} {choice!r}{hint}"
            raise bad_input("software.json", step.id, found, ", ".join(known))
        merged |= known[choice]
    return merged | (_of_rail(step, package) or {}) | step.environment


def _of_rail(step: Step, package: Package) -> dict[str, str] | None:
    """Return the variables that choose the rail of `step`; None if its MPI is not known."""
    rail = str(step.parameters.get(RAIL, ALL_RAILS))
    program = package.programs.get(step.program)
    mpi = program.mpi.family if program and program.mpi else None
    return {} if rail == ALL_RAILS else variables_of_rail(rail, mpi)


def unselected_rails(plan: Plan, software: Software) -> dict[str, Message]:
    """Return the steps of one rail whose MPI cannot be told to use this rail, with the reason."""
    return {
        step.id: Message("rail-not-chosen", rail=f"{step.parameters[RAIL]}")
        for step in plan.steps()
        if step.package in software.packages
        and _of_rail(step, software.packages[step.package]) is None
    }
