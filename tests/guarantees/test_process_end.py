"""A step ends when its work has, with the status that its work deserves, whatever a library left running in it."""

from collections.abc import Mapping

import psutil

from tests.guarantees.running import Clone, Ended

FETCHED = "data/taxi/inputs.json"
MISSING = {"fetch": {"source": "files", "files": {"paths": ["missing.parquet"]}}}
# Python runs this module as it starts. In the process of a step it does what libraries do that are not shut down: an
# error of bio2zarr left a pool of processes that waited for work, behind a thread that waited for them.
LIBRARY = """
import sys

if any("/.snakemake/scripts/" in word for word in sys.orig_argv):
    import atexit, multiprocessing, subprocess, threading, time

    atexit.register(lambda: open("registered.txt", "w").close())
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(100_000,)).start()
    subprocess.Popen(["sleep", "100001"])
    threading.Thread(target=time.sleep, args=(100_000,)).start()
"""
HANGING = LIBRARY + "    atexit.register(time.sleep, 100_000)\n"


def run_beside(clone: Clone, library: str, settings: Mapping[str, object]) -> Ended:
    """Run a step of taxi in a Python that has the library."""
    folder = clone / "library"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(library)
    return clone.run("taxi", settings, FETCHED, PYTHONPATH=str(folder))


def alive(clone: Clone) -> list[str]:
    """Return the commands of the processes that work in the clone."""
    return [" ".join(each.info["cmdline"] or []) for each in psutil.process_iter(["cwd", "cmdline"])
            if each.info["cwd"] == str(clone.folder) and each.status() != psutil.STATUS_ZOMBIE]  # fmt: skip


def test_a_step_that_failed_ends_with_its_error_though_processes_and_threads_were_left(fresh: Clone) -> None:
    ended = run_beside(fresh, LIBRARY, MISSING)
    assert ended.status == 1
    assert ended.message.startswith("InputError: missing.parquet does not exist")
    assert alive(fresh) == []
    assert not (fresh / FETCHED).exists()
    assert (fresh / "registered.txt").exists()


def test_a_step_that_succeeded_ends_with_its_result_though_what_is_registered_for_its_end_hangs(fresh: Clone) -> None:
    ended = run_beside(fresh, HANGING, {})
    assert ended.status == 0, ended.terminal
    assert alive(fresh) == []
    assert (fresh / FETCHED).exists()
