# What every application's workflow includes: the package on the path of each job, the configuration validated before
# any rule, and the functions that rules share.
import json
import os
import shlex
import sys
from pathlib import Path

ROOT = Path(workflow.current_basedir).parent
# The package, and beside it the benchmarks, which are no part of it.
PACKAGES = [str(ROOT / "src"), str(ROOT)]
sys.path[:0] = [folder for folder in PACKAGES if folder not in sys.path]

from whitewater.config.gpu import describe_auto, require_device
from whitewater.config.resolve import Source, resolve
from whitewater.errors import WhitewaterError
from whitewater.local_files import files_in, files_of, state_of
from whitewater.remote import local_path


def sources():
    """Return where the configuration comes from, weakest first: files of the workflow, then of the command line."""
    given = workflow.config_settings
    named = [str(path) for path in given.configfiles]
    own = [str(path) for path in workflow.configfiles if str(path) not in named]
    files = [
        Source(os.path.relpath(path), snakemake.common.configfile.load_configfile(path))
        for path in own + named
    ]
    return [*files, Source("--config", given.config)]


asked_for = config.get("device", "cpu")
try:
    config.update(resolve(config, sources=sources()))
except WhitewaterError as error:
    sys.exit(f"{type(error).__name__}:\n{error}")

# After `source activate`, and kept by --sdm conda, which unsets an exported PYTHONPATH. The cluster and `refresh` are no
# parameters of a rule, because nothing needs to run again when they change.
shell.prefix(
    f"export PYTHONPATH={shlex.quote(':'.join(PACKAGES))}${{{{PYTHONPATH:+:$PYTHONPATH}}}}"
    f" WHITEWATER_CLUSTER={shlex.quote(json.dumps(config['cluster']).replace('{', '{{').replace('}', '}}'))}"
    f" WHITEWATER_REFRESH={'1' if config['refresh'] else ''}; "
)


def settings(path):
    """Return a section of the configuration as JSON, by its path in `lookup`'s notation.

    As a function, because Snakemake takes braces in a parameter's text, such as those of `{x}.csv`, for wildcards.
    """

    def section(wildcards):
        return json.dumps(lookup(path, within=config), sort_keys=True)

    return section


def watched(names):
    """Return an input function: the local files that the paths, globs and `file://` URLs of `names()` stand for.

    One that is missing is left to the error of the step that reads it, and one whose name Snakemake cannot hold is
    followed by `state` alone.
    """

    def files(wildcards):
        return [path for path in files_of(names()) if can_be_input(path)]

    return files


def state(names, *sections):
    """Return a parameter that changes with the files of `names()`, older times included, or with the sections.

    The step that reads the files has it, and so does the next one. Where the reading fails, later results are still
    there, and without it Snakemake would take them for finished.
    """

    def digest(wildcards):
        described = [lookup(path, within=config) for path in sections]
        return state_of(files_of(names()), json.dumps(described, sort_keys=True))

    return digest


def can_be_input(path):
    """Return whether Snakemake can hold a path: text without braces, which would be wildcards."""
    is_text = os.fsencode(path).decode("utf-8", "replace") == path
    return is_text and not {"{", "}"} & set(path)


def gpus(wildcards):
    return int(wildcards.device == "gpu")


def environment(wildcards):
    return str(ROOT / "envs" / f"{getattr(wildcards, 'device', 'cpu')}.yaml")


onstart:
    if asked_for == "auto":
        print(describe_auto(config["device"]), file=sys.stderr)
    try:
        require_device(config["device"])
    except WhitewaterError as error:
        sys.exit(f"{type(error).__name__}: {error}")
