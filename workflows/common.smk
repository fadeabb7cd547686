# What every application's workflow includes: the configuration, checked before any rule, and what rules share.
import sys
from pathlib import Path

# Where this is a checkout, its packages and, beside them, its benchmarks come before installed ones.
_checkout = Path(str(workflow.current_basedir)).parent
_packages = (
    [str(_checkout / "src"), str(_checkout)] if (_checkout / "src").is_dir() else []
)
sys.path[:] = [*_packages, *(folder for folder in sys.path if folder not in _packages)]

from whitewater.application import applications, find_entry_points, in_project
from whitewater.config_files import project_files, read_source
from whitewater.engines.config import Cluster, choose_engine
from whitewater.engines.gpu_check import missing_gpu, require_device
from whitewater.errors import WhitewaterError
from whitewater.io.places import files_in
from whitewater.io.remote import local_path
from whitewater.workflow import (
    RulesByPath,
    by_input,
    configuration,
    cores_by_input,
    shell_prefix,
    state,
    step_digest,
    watch_files,
)

try:
    # Read here, too, because Snakemake does not say in which line a file is wrong.
    _files = [read_source(file).name for file in project_files(_checkout)]
    # Beside a remote Snakefile there are no folders: its applications are those that the configuration names.
    APPLICATIONS = applications(
        in_project(_checkout)
        or [name for name in find_entry_points(Path.cwd()) if name in config]
    )
except WhitewaterError as error:
    sys.exit(error.with_kind())

# A module has the configuration of the Snakefile that uses it instead.
for _file in _files:

    configfile: _file


_device_asked_for = config.get("device", "cpu")
try:
    config.update(configuration(workflow, config, list(APPLICATIONS)))
except WhitewaterError as error:
    sys.exit(f"{type(error).__name__}:\n{error}")

shell.prefix(shell_prefix(_packages))


# With it a module may change what is ours, see its docstring.
rules = RulesByPath(rules)


def below_run(folder):
    """Return a folder of this run, such as results/ or, of a run with a name, results/<name>/."""
    return str(Path(folder, config["run"]["name"]))


pathvars:
    results=below_run("results"),
    logs=below_run("logs"),
    data=below_run("data"),


def engine(wildcards):
    """Return the engine that a step computes with; rules of steps without it compute on the host."""
    return choose_engine(config, wildcards.device)


def workers(wildcards, input):
    """Return the cores of a job: few for little input, so that other jobs run beside it."""
    return cores_by_input(input, most=workflow.cores)


def gpus(wildcards):
    """Return the GPUs of a job."""
    return int(wildcards.device == "gpu")


def picture(path, what, category, subcategory):
    """Return a picture's file, with its place in the report; pictures whose names differ in numbers share a caption."""
    return report(
        path,
        caption=f"report/{Path(path).stem.rstrip('_0123456789')}.rst",
        category=category,
        subcategory=subcategory,
        labels={"picture": what, "device": "{device}"},
    )


def pictures(folder, described, formats, category):
    """Return the files of all pictures; the report shows each once, in the first of its formats."""
    shown, *others = formats
    return [
        picture(f"{folder}/{name}.{shown}", what, category, subcategory)
        for name, (subcategory, what) in described.items()
    ] + [f"{folder}/{name}.{form}" for form in others for name in described]


def records_of(steps):
    """Return the records of steps."""
    return [getattr(rules, step).output.record for step in steps]


def results_of(made, steps):
    """Return what a complete run leaves, so that a file that was removed is made again: all outputs of the rules `made`.

    The records of all steps are among it: a step that fails loses its record, so that the next run runs it again.
    Without that, results of data that have changed since would count as finished where a step before them failed.
    """
    paths = [path for name in made for path in getattr(rules, name).output]
    return expand([*paths, *records_of(steps)], device=config["device"])


wildcard_constraints:
    device="cpu|gpu",


onstart:
    if _device_asked_for == "auto":
        why = missing_gpu() or "a usable GPU was found."
        print(f"device=auto took {config['device']}: {why}", file=sys.stderr)
    try:
        # Where jobs go elsewhere, so does the GPU: each step asks for it.
        require_device(
            config["device"],
            attached=Cluster(**config["cluster"]).attached
            or workflow.non_local_exec,
        )
    except WhitewaterError as error:
        sys.exit(f"{type(error).__name__}: {error}")
