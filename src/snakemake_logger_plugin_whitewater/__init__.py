"""The terminal output of a run: one line for each step, warnings, and errors last.

Snakemake finds the plugin by the name of this package; profiles/default selects it with ``--logger whitewater``. With
``V=1`` in the environment, or in a dry run, Snakemake's own output is shown instead; otherwise it only goes to its log.
"""

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

# As in `whitewater.log`. It is not imported: the workflow, which starts later, decides which Whitewater is used.
SHORT, FAILED = "WHITEWATER_SHORT", "------ failed ------"
CLEAR_LINE = "\r\x1b[K"
# Snakemake's messages after a failed job, which are replaced by the job's own message.
FOLLOWS_FAILURE = ("Exiting because a job execution failed", "WorkflowError:\nAt least one job did not complete")


class LogHandler(LogHandlerBase):
    """Shows each step when it is done, and at the end what went wrong; Snakemake writes its own log beside it."""

    writes_to_stream = has_filter = has_formatter = True
    writes_to_file = needs_rulegraph = False

    def __post_init__(self) -> None:
        self.running: dict[int, tuple[str, float]] = {}  # name and start time of jobs
        self.has_failed = False
        self.errors: list[str] = []
        self.failed: list[dict[str, Any]] = []
        self._of_event: dict[LogEvent, Callable[[dict[str, Any]], None]] = {
            LogEvent.RUN_INFO: self._count,
            LogEvent.JOB_INFO: self._start,
            LogEvent.JOB_FINISHED: self._finish,
            LogEvent.JOB_ERROR: self.failed.append,
        }
        self.verbose: ColorizingTextHandler | None = None
        common = self.common_settings
        if common.dryrun or common.verbose or common.debug_dag or os.environ.get("V", "") not in ("", "0"):
            self.verbose = ColorizingTextHandler(common.nocolor, sys.stdout if common.stdout else sys.stderr)
            self.verbose.setFormatter(DefaultFormatter(common.quiet, common.show_failed_logs))
            self.verbose.addFilter(
                DefaultFilter(common.quiet, common.debug_dag, common.verbose, common.dryrun, common.printshellcmds)
            )
        else:
            os.environ[SHORT] = "1"  # jobs inherit it: they leave their messages to this process

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record, or keep it for the end."""
        if self.verbose is not None:
            self.verbose.handle(record)
            self.has_failed |= record.levelno >= logging.ERROR
            return
        event, message = getattr(record, "event", None), str(record.msg or "")
        if event in self._of_event:
            self._of_event[event](record.__dict__)
        elif record.levelno >= logging.ERROR:
            self.has_failed = True
            if not message.startswith(FOLLOWS_FAILURE):
                self.errors.append(message)
        elif record.levelno >= logging.WARNING or message.startswith("Nothing to be done"):
            self._show(message)

    def close(self) -> None:
        """Show what went wrong, so that it stands last."""
        # A killed job has left no message: show Snakemake's.
        messages = []
        for fields in self.failed:
            logs = [Path(log) for log in fields["log"]]
            texts = [log.read_text(errors="backslashreplace") for log in logs if log.is_file()]
            own = [text.rpartition(f"{FAILED}\n")[2].strip() for text in texts if FAILED in text]
            cause = own[0] if own else "\n".join(dict.fromkeys(self.errors))
            paths = ", ".join(map(str, logs)) or "none"
            messages.append(f"{cause}\n{_name(fields['rule_name'])} has failed; its log: {paths}")
        for message in dict.fromkeys(messages) or (self.has_failed and _check_configuration()) or self.errors:
            self._show(f"\n{message}")
        self.has_failed, self.errors, self.failed = False, [], []
        super().close()

    def _start(self, fields: dict[str, Any]) -> None:
        # A rule without a log is a target, which only collects files.
        if fields["log"]:
            self.running[fields["jobid"]] = _name(fields["rule_name"]), time.monotonic()
            if sys.stderr.isatty():
                self._show(f"{_name(fields['rule_name'])} ...", end="")

    def _finish(self, fields: dict[str, Any]) -> None:
        if job := self.running.pop(fields["job_id"], None):
            name, start = job
            self._show(f"{time.strftime('%H:%M:%S')} {name:30}{time.monotonic() - start:8.1f} s")

    def _count(self, fields: dict[str, Any]) -> None:
        if jobs := (fields.get("stats") or {}).get("total"):
            self._show(f"{jobs} jobs to run")

    @staticmethod
    def _show(text: str, end: str = "\n") -> None:
        print(f"{CLEAR_LINE if sys.stderr.isatty() else ''}{text}", end=end, file=sys.stderr, flush=True)


def _name(rule: str) -> str:
    """Return ``<application> <step>`` for the name of a rule."""
    applications = [folder.name for folder in Path("workflows").glob("*/") if rule.startswith(f"{folder.name}_")]
    application = max(applications, key=len, default=rule.partition("_")[0])
    return f"{application} {rule.removeprefix(f'{application}_')}"


def _check_configuration() -> list[str]:
    """Return the error in a file of ``--configfile``; Snakemake does not say in which line it is."""
    from whitewater.config_files import read_source
    from whitewater.errors import ConfigError

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", type=Path, default=[])
    files = parser.parse_known_args()[0].configfile
    try:
        for file in files:
            read_source(file)
    except ConfigError as error:
        hint = "--configfile takes several files: name targets before it." if files[1:] else ""
        return [f"{error.with_kind()} {hint}".strip()]
    return []
