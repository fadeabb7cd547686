"""A fitted workflow as a folder of JSON and Parquet, which is read without running any code that is in it.

``workflow.json`` holds the format, the columns of the data and of the results, the operators in order with their
parameters and where their columns come from, what they learnt that is small, and the SHA-256 of each table and of
itself. A table is ``<number>-<operator>/<n>.<table>.parquet``, with *n* the number of the statistic. All bytes are
checked before any is interpreted, and operators are those of `whitewater.recsys.operators.OPERATORS`.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import whitewater
from whitewater.config import argument
from whitewater.errors import ConfigError, InputError, IntegrityError, WhitewaterError
from whitewater.recsys.operators import OPERATORS
from whitewater.recsys.plan import Plan, Stage, staged_operator
from whitewater.recsys.schema import Schema, described, field_of
from whitewater.recsys.transforming import Transformation
from whitewater.store import check_replaceable, staged, write_json

if TYPE_CHECKING:
    from whitewater.recsys.operator import Fitted, Operator

FORMAT = 1
NAME = "workflow.json"
_AGAIN = "Fit the workflow and save it again, or copy the folder again."


def save(fitted: Transformation, directory: Path) -> None:
    """Write a fitted workflow as a folder, whole or not at all; one that is there is replaced.

    Raises
    ------
    ConfigError
        If another folder or file is there.
    """
    directory = directory.absolute()
    check_replaceable(directory, sign=NAME)
    with staged({"workflow": directory}, owner=directory.with_name(f".{directory.name}.owner")) as paths:
        write(fitted, paths["workflow"])


def write(fitted: Transformation, directory: Path) -> None:
    """Write a fitted workflow into a folder, which is made."""
    directory.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    nodes = [
        _written_node(number, stage, learnt or {}, directory, files)
        for number, (stage, learnt) in enumerate(zip(fitted.plan.stages, fitted.learnt, strict=True))
    ]
    value = {
        "format": FORMAT,
        "whitewater": whitewater.__version__,
        "input": [described(each) for each in fitted.plan.schema],
        "output": [described(each) for each in fitted.plan.output_fields()],
        "from": fitted.plan.outputs,
        "carried": fitted.carried,
        "seconds": fitted.seconds,
        "nodes": nodes,
        "files": files,
    }
    write_json(directory / NAME, {**value, "sha256": _digest_of(value)})


def load(directory: Path) -> Transformation:
    """Read a fitted workflow.

    Raises
    ------
    InputError
        If there is none, a file is missing, or it is of another format.
    IntegrityError
        If a byte is not as it was written, or what is written is no workflow.
    """
    value = _checked(directory)
    try:
        return _restored(value, _Tables(directory, value["files"]))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise IntegrityError(
            f"{directory / NAME} describes no workflow ({type(error).__name__}: {error}). {_AGAIN}"
        ) from error


def _checked(directory: Path) -> dict[str, Any]:
    """Return what the JSON file holds, after its bytes were checked."""
    path = directory / NAME
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{directory} holds no fitted workflow: {error}. Name a folder that Workflow.save wrote."
        ) from error
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"{path} is damaged: it is no JSON ({error}). {_AGAIN}") from error
    version = value.get("format") if isinstance(value, dict) else None
    if isinstance(version, int) and version > FORMAT:
        raise InputError(
            f"{directory} is of format {version}, which a newer version of Whitewater ({value.get('whitewater')}) "
            f"wrote; this one reads {FORMAT}. Use the newer version."
        )
    unsigned = {name: each for name, each in value.items() if name != "sha256"} if isinstance(value, dict) else {}
    if version != FORMAT or value.get("sha256") != _digest_of(unsigned) or data != _canonical(value) + b"\n":
        raise IntegrityError(f"{path} is damaged: its checksum is not that of what it holds. {_AGAIN}")
    return unsigned


class _Tables:
    """The tables of a folder: the bytes of all are checked, and kept until they are interpreted."""

    def __init__(self, directory: Path, files: Mapping[str, str]) -> None:
        self._directory = directory
        self._files = files
        for name in files:
            self._bytes(name)

    def read(self, name: str) -> pa.Table:
        data = self._bytes(name)
        try:
            with pq.ParquetFile(pa.BufferReader(data), pre_buffer=False) as file:
                return file.read(use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise IntegrityError(f"{self._directory / name} is no table: {error}. {_AGAIN}") from error

    def _bytes(self, name: str) -> bytes:
        path = self._directory / name
        if name not in self._files or Path(name).is_absolute() or ".." in Path(name).parts:
            raise IntegrityError(f"{self._directory / NAME} names the file {name!r}, which is not its own. {_AGAIN}")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path} is missing or cannot be read: {error}. {_AGAIN}") from error
        if hashlib.sha256(data).hexdigest() != self._files[name]:
            raise IntegrityError(f"{path} is damaged: its checksum is not that in {NAME}. {_AGAIN}")
        return data


def _restored(value: Mapping[str, Any], tables: _Tables) -> Transformation:
    plan = Plan(Schema(tuple(map(field_of, value["input"]))), (), {})
    learnt: list[Mapping[str, Fitted]] = []
    for node in value["nodes"]:
        stage = _stage(plan, node)
        learnt.append(_learnt(stage, node, tables))
        outputs = tuple(stage.operator.described(stage.outputs, learnt[-1]))
        plan = replace(plan, stages=(*plan.stages, replace(stage, outputs=outputs)))
    plan = replace(plan, outputs={name: value["from"][name] for name in (each["name"] for each in value["output"])})
    if [described(each) for each in plan.output_fields()] != value["output"]:
        raise IntegrityError(
            f"the operators of this version of Whitewater ({whitewater.__version__}) make other columns than those of "
            f"the version that wrote the workflow ({value['whitewater']}). Fit the workflow and save it again."
        )
    # Older workflows do not tell which columns are seconds.
    return Transformation(plan, tuple(learnt), tuple(value["carried"]), tuple(value.get("seconds", ())))


def _stage(plan: Plan, node: Mapping[str, Any]) -> Stage:
    inputs = tuple(each if isinstance(each, str) else tuple(each) for each in node["inputs"])
    return staged_operator(plan, _operator(node["operator"], node["parameters"]), inputs, node["from"])


def _operator(name: str, parameters: Mapping[str, Any]) -> Operator:
    if name not in OPERATORS:
        raise InputError(
            f"the workflow has an operator {name!r}, which this version of Whitewater does not know. It knows "
            f"{', '.join(OPERATORS)}. Use the version that wrote the workflow."
        )
    try:
        # As from JSON, where a tuple is a list.
        return argument.read(OPERATORS[name], json.dumps(parameters), option=name)
    except ConfigError as error:
        raise InputError(f"the parameters of the workflow's operator {name} are wrong: {error}. {_AGAIN}") from error


def _learnt(stage: Stage, node: Mapping[str, Any], tables: _Tables) -> dict[str, Fitted]:
    found: dict[str, Fitted] = {}
    wanted = sorted(stage.operator.learnt_names(stage.inputs, stage.fields))
    if wanted != sorted(node["statistics"]):
        raise IntegrityError(
            f"what {stage.label} learnt is of {sorted(node['statistics'])}, but it needs that of {wanted}. {_AGAIN}"
        )
    for name, stored in node["statistics"].items():
        read = {table: tables.read(file) for table, file in stored["tables"].items()}
        try:
            found[name] = stage.operator.restored(stage.inputs, stored["facts"], read)
        except WhitewaterError:
            raise
        except Exception as error:
            raise IntegrityError(f"what {stage.label} learnt of {name} cannot be read: {error}. {_AGAIN}") from error
    return found


def _written_node(
    number: int, stage: Stage, learnt: Mapping[str, Fitted], directory: Path, files: dict[str, str]
) -> dict[str, Any]:
    statistics = {}
    for index, (name, fitted) in enumerate(sorted(learnt.items())):
        tables = {}
        for table, content in fitted.tables().items():
            file = f"{number:03d}-{stage.label}/{index}.{table}.parquet"
            files[file] = _write_table(content, directory / file)
            tables[table] = file
        statistics[name] = {"facts": fitted.facts(), "tables": tables}
    return {
        "operator": stage.label,
        "parameters": stage.operator.model_dump(mode="json"),
        "inputs": stage.inputs,
        "from": stage.origins,
        "statistics": statistics,
    }


def _write_table(table: pa.Table, path: Path) -> str:
    path.parent.mkdir(exist_ok=True)
    written = io.BytesIO()
    pq.write_table(
        table, written, compression="zstd", compression_level=1, use_dictionary=False, write_statistics=False
    )
    path.write_bytes(written.getbuffer())
    return hashlib.sha256(written.getbuffer()).hexdigest()


def _digest_of(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(value)).hexdigest()


def _canonical(value: Any) -> bytes:
    """Return JSON as `whitewater.store.write_json` writes it, without the newline at the end."""
    return json.dumps(value, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False).encode()
