"""What the wheel holds besides its packages: the files that `whitewater new` makes projects from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "whitewater/template"
# What is rendered of a checkout besides the packages in `src/`; see `whitewater.template.source`.
SHIPPED = (
    ".devcontainer", ".dockerignore", ".editorconfig", ".github/workflows/ci.yml", ".gitignore", ".gitlab-ci.yml",
    ".pre-commit-config.yaml", "Dockerfile", "LICENSE", "Makefile", "Snakefile", "config", "envs", "notebooks",
    "profiles", "pyproject.toml", "tests/apps", "tests/conftest.py", "workflows",
)  # fmt: skip
# What no project is made from: the benchmarks.
LEFT_OUT = ("workflows/benchmarks", "config/benchmarks.yaml", "envs/bench")


class TemplateFiles(BuildHookInterface[Any]):
    """Adds the files that are rendered; those of a checkout are used where they are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, each by its path."""
        if version == "editable":
            return
        for name in SHIPPED:
            top = Path(self.root, name)
            for path in [top, *sorted(top.rglob("*"))]:
                place = path.relative_to(self.root).as_posix()
                if path.is_file() and "__pycache__" not in path.parts and not place.startswith(LEFT_OUT):
                    build_data["force_include"][str(path)] = f"{PLACE}/files/{place}"
