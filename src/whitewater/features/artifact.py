"""A fitted workflow as a folder of JSON and Parquet, which is read without running any code that is in it.

``workflow.json`` holds the format, the columns of the data and of the results, the operators in order with their
parameters and where their columns come from, what they learned that is small, and the SHA-256 of each table and of
itself. A table is ``<number>-<operator>/<n>.<table>.parquet``, with *n* the number of the statistic. All bytes are
checked before any is interpreted, and operators are those of `whitewater.features.operators.OPERATORS`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import whitewater
from whitewater.errors import ConfigError, InputError, IntegrityError, WhitewaterError
from whitewater.features import operators
from whitewater.features.plan import Plan, Stage, stage_operator
from whitewater.features.schema import Schema, column_json, field_of
from whitewater.features.transform import Transformation
from whitewater.io.folder import Format, write_file
from whitewater.io.store import check_replaceable, staged

if TYPE_CHECKING:
    from whitewater.features.operator import Fitted, Operator

_AGAIN = "Fit the workflow and save it again, or copy the folder again."
FORMAT = Format("workflow.json", 1, "fitted workflow", remedy=_AGAIN)


def save(fitted: Transformation, directory: Path) -> None:
    """Write a fitted workflow as a folder, whole or not at all; one that is there is replaced.

    Raises ConfigError if another folder or file is there.
    """
    directory = directory.absolute()
    check_replaceable(directory, sign=FORMAT.name)
    with staged({"workflow": directory}, owner=directory.with_name(f".{directory.name}.owner")) as paths:
        write(fitted, paths["workflow"])


def write(fitted: Transformation, directory: Path) -> None:
    """Write a fitted workflow into a folder, which is made."""
    files: dict[str, str] = {}
    nodes = [
        _written_node(number, stage, learned or {}, directory, files)
        for number, (stage, learned) in enumerate(zip(fitted.plan.stages, fitted.learned, strict=True))
    ]
    value = {
        "input": [column_json(each) for each in fitted.plan.schema],
        "output": [column_json(each) for each in fitted.plan.output_fields()],
        "from": fitted.plan.outputs,
        "carried": fitted.carried,
        "seconds": fitted.seconds,
        "nodes": nodes,
    }
    FORMAT.write_signed(directory, value, files)


def load(directory: Path) -> Transformation:
    """Read a fitted workflow.

    Raises InputError if there is none, a file is missing, or it is of another format; IntegrityError if a byte is not
    as it was written, or what is written is not a workflow.
    """
    value = FORMAT.read_signed(directory)
    try:
        return _restore(value, directory)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise IntegrityError(
            f"{directory / FORMAT.name} describes no workflow ({type(error).__name__}: {error}). {_AGAIN}"
        ) from error


def _table(directory: Path, name: str, files: Mapping[str, str]) -> pa.Table:
    data = FORMAT.read_file(directory, name, files)
    try:
        with pq.ParquetFile(pa.BufferReader(data), pre_buffer=False) as file:
            return file.read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise IntegrityError(f"{directory / name} is not a table: {error}. {_AGAIN}") from error


def _restore(value: Mapping[str, Any], directory: Path) -> Transformation:
    plan = Plan(Schema(tuple(map(field_of, value["input"]))), (), {})
    learned: list[Mapping[str, Fitted]] = []
    for node in value["nodes"]:
        inputs = tuple(each if isinstance(each, str) else tuple(each) for each in node["inputs"])
        stage = stage_operator(plan, _operator(node["operator"], node["parameters"]), inputs, node["from"])
        learned.append(_learned(stage, node, directory, value["files"]))
        outputs = tuple(stage.operator.describe(stage.outputs, learned[-1]))
        plan = replace(plan, stages=(*plan.stages, replace(stage, outputs=outputs)))
    plan = replace(plan, outputs={name: value["from"][name] for name in (each["name"] for each in value["output"])})
    if [column_json(each) for each in plan.output_fields()] != value["output"]:
        raise IntegrityError(
            f"the operators of this version of Whitewater ({whitewater.__version__}) make other columns than those of "
            f"the version that wrote the workflow ({value['whitewater']}). Fit the workflow and save it again."
        )
    # Older workflows do not tell which columns are seconds.
    return Transformation(plan, tuple(learned), tuple(value["carried"]), tuple(value.get("seconds", ())))


def _operator(name: str, parameters: Mapping[str, Any]) -> Operator:
    if name not in operators.OPERATORS:
        raise InputError(
            f"the workflow has an operator {name!r}, which this version of Whitewater does not know. It knows "
            f"{', '.join(operators.OPERATORS)}. Use the version that wrote the workflow."
        )
    try:
        # As from JSON, where a tuple is a list.
        operator: type[Operator] = getattr(operators, name)
        return operator.from_option(json.dumps(parameters), option=name)
    except ConfigError as error:
        raise InputError(f"the parameters of the workflow's operator {name} are wrong: {error}. {_AGAIN}") from error


def _learned(stage: Stage, node: Mapping[str, Any], directory: Path, files: Mapping[str, str]) -> dict[str, Fitted]:
    learned: dict[str, Fitted] = {}
    wanted = sorted(stage.operator.learned_names(stage.inputs, stage.fields))
    if wanted != sorted(node["statistics"]):
        raise IntegrityError(
            f"what {stage.label} learned is of {sorted(node['statistics'])}, but it needs that of {wanted}. {_AGAIN}"
        )
    for name, stored in node["statistics"].items():
        read = {table: _table(directory, file, files) for table, file in stored["tables"].items()}
        try:
            learned[name] = stage.operator.restore(stage.inputs, stored["facts"], read)
        except WhitewaterError:
            raise
        except Exception as error:
            raise IntegrityError(f"what {stage.label} learned of {name} cannot be read: {error}. {_AGAIN}") from error
    return learned


def _written_node(
    number: int, stage: Stage, learned: Mapping[str, Fitted], directory: Path, files: dict[str, str]
) -> dict[str, Any]:
    statistics = {}
    for index, (name, fitted) in enumerate(sorted(learned.items())):
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
    written = io.BytesIO()
    pq.write_table(
        table, written, compression="zstd", compression_level=1, use_dictionary=False, write_statistics=False
    )
    return write_file(path, written.getbuffer())
