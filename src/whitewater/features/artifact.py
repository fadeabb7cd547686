"""A fitted workflow as a folder of JSON and Parquet, which is safe to load: it contains no code.

``workflow.json`` has the columns of the data and of the results, the operators with their parameters, columns and small
results, and the SHA-256 of each table and of itself. A table is ``<number>-<operator>/<n>.<table>.parquet`` for the
*n*-th statistic. All bytes are checked before they are parsed, and only operators of
`whitewater.features.operators.OPERATORS` are accepted.
"""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

import whitewater
from whitewater.errors import ConfigError, InputError, IntegrityError, WhitewaterError
from whitewater.features import operators
from whitewater.features.operator import Fitted, Operator
from whitewater.features.plan import Plan, Stage
from whitewater.features.schema import Schema, column_from_json, column_json
from whitewater.io.folder import Format, write_file

_REMEDY = "Fit the workflow and save it again, or copy the folder again."
FORMAT = Format("workflow.json", 1, "fitted workflow", remedy=_REMEDY)


def write(plan: Plan, directory: Path) -> None:
    """Write a fitted workflow into a new folder."""
    files: dict[str, str] = {}
    value = {
        "input": [column_json(field) for field in plan.schema],
        "output": [column_json(field) for field in plan.fields()],
        "from": plan.outputs,
        "carried": plan.carried,
        "seconds": plan.seconds,
        "nodes": [_write_node(number, stage, directory, files) for number, stage in enumerate(plan.stages)],
    }
    FORMAT.write_signed(directory, value, files)


def load(directory: Path) -> Plan:
    """Read a fitted workflow.

    Raises InputError if there is none, a file is missing, or the format differs; IntegrityError if a byte has changed,
    or the content is not a workflow.
    """
    value = FORMAT.read_signed(directory)
    try:
        return _restore(value, directory)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise IntegrityError(
            f"{directory / FORMAT.name} describes no workflow ({type(error).__name__}: {error}). {_REMEDY}"
        ) from error


def _table(directory: Path, name: str, files: Mapping[str, str]) -> pa.Table:
    data = FORMAT.read_file(directory, name, files)
    try:
        with pq.ParquetFile(pa.BufferReader(data), pre_buffer=False) as file:
            return file.read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise IntegrityError(f"{directory / name} is not a table: {error}. {_REMEDY}") from error


def _restore(value: Mapping[str, Any], directory: Path) -> Plan:
    # Older versions did not write ``seconds``.
    plan = Plan(
        Schema(tuple(map(column_from_json, value["input"]))),
        outputs={column["name"]: value["from"][column["name"]] for column in value["output"]},
        carried=tuple(value["carried"]),
        seconds=tuple(value.get("seconds", ())),
    )
    for node in value["nodes"]:
        inputs = tuple(entry if isinstance(entry, str) else tuple(entry) for entry in node["inputs"])
        stage = _operator(node["operator"], node["parameters"]), inputs, node["from"]
        plan = plan.add(*stage, _learned(plan.add(*stage).stages[-1], node, directory, value["files"]))
    if [column_json(field) for field in plan.fields()] != value["output"]:
        raise IntegrityError(
            f"the operators of this version of Whitewater ({whitewater.__version__}) make other columns than those of "
            f"the version that wrote the workflow ({value['whitewater']}). Fit the workflow and save it again."
        )
    return plan


def _operator(name: str, parameters: Mapping[str, Any]) -> Operator:
    if name not in operators.OPERATORS:
        raise InputError(
            f"the workflow has an operator {name!r}, which this version of Whitewater does not know. It knows "
            f"{', '.join(operators.OPERATORS)}. Use the version that wrote the workflow."
        )
    try:
        # Parsed as JSON, so that a list can become a tuple.
        return getattr(operators, name).from_option(json.dumps(parameters), option=name)
    except ConfigError as error:
        raise InputError(f"the parameters of the workflow's operator {name} are wrong: {error}. {_REMEDY}") from error


def _learned(stage: Stage, node: Mapping[str, Any], directory: Path, files: Mapping[str, str]) -> dict[str, Fitted]:
    learned: dict[str, Fitted] = {}
    required, present = sorted(stage.operator.learned_names(stage.inputs, stage.fields)), sorted(node["statistics"])
    if required != present:
        raise IntegrityError(f"{stage.label} has the statistics {present}, but needs {required}. {_REMEDY}")
    for name, stored in node["statistics"].items():
        tables = {table: _table(directory, file, files) for table, file in stored["tables"].items()}
        try:
            learned[name] = stage.operator.restore(stage.inputs, stored["facts"], tables)
        except WhitewaterError:
            raise
        except Exception as error:
            reason = str(error)
            if isinstance(error, ValidationError):
                faults = error.errors()
                reason = "; ".join(f"{each['loc'][0]} is {each['input']!r}, but {each['msg']}" for each in faults)
            message = f"the statistic {name} of {stage.label} cannot be read: {reason}. {_REMEDY}"
            raise IntegrityError(message) from error
    return learned


def _write_node(number: int, stage: Stage, directory: Path, files: dict[str, str]) -> dict[str, Any]:
    statistics = {}
    for index, (name, fitted) in enumerate(sorted((stage.learned or {}).items())):
        tables = {}
        for table, content in fitted.tables().items():
            file = f"{number:03d}-{stage.label}/{index}.{table}.parquet"
            buffer = io.BytesIO()
            pq.write_table(
                content, buffer, compression="zstd", compression_level=1, use_dictionary=False, write_statistics=False
            )
            files[file] = write_file(directory / file, buffer.getbuffer())
            tables[table] = file
        statistics[name] = {"facts": fitted.facts(), "tables": tables}
    return {
        "operator": stage.label,
        "parameters": stage.operator.model_dump(mode="json"),
        "inputs": stage.inputs,
        "from": stage.origins,
        "statistics": statistics,
    }
