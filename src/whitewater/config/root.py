"""The whole configuration: what all applications have in common, and a section for each of them."""

import re
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field, create_model, field_validator

from whitewater.application import Application
from whitewater.config.base import Section
from whitewater.engines.config import Cluster

FOLDER = r"^[A-Za-z0-9_-]*$"


class Run(Section):
    """A named run keeps its results, data and logs separate from those of other runs."""

    name: str = Field(
        "",
        description="Folder below results/, data/ and logs/; empty: none. Downloads are shared by all runs.",
        json_schema_extra={"pattern": FOLDER},
    )

    @field_validator("name")
    @classmethod
    def _is_a_folder(cls, name: str) -> str:
        if not re.fullmatch(FOLDER, name):
            raise ValueError("use letters, digits, _ and - only: it becomes the name of a folder")
        return name


class Common(Section):
    """What all applications have in common."""

    device: Literal["cpu", "gpu", "auto"] = Field(
        "cpu", description="Where steps compute; auto uses a GPU if there is one, and says which device it chose."
    )
    engine: Literal["auto", "dask", "local"] = Field(
        "auto",
        description="What runs the tasks of a step. dask: Dask's workers; local: threads of the step's process, on the "
        "CPU only; auto: dask on GPUs or where cluster names a scheduler, else local. See docs/engines.md.",
    )
    run: Run = Run()
    refresh: bool = Field(
        False,
        description="Download again what was downloaded before; use it with `--forcerun` and the name of the rule.",
    )
    cluster: Cluster = Cluster()


def whole(applications: Iterable[Application]) -> type[Common]:
    """Return the model of the whole configuration of a project with these applications."""
    sections: dict[str, Any] = {each.name: (each.settings, each.settings()) for each in applications}
    return create_model("Config", __base__=Common, __doc__="Whitewater's configuration.", **sections)
