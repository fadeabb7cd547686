"""What a digest of a step's code covers, on a package of the test's own."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from whitewater.code_digest import code_digest, reachable_parts
from whitewater.errors import ConfigError

SOURCE = Path(__file__).parents[2] / "src"
# A module of ours that imports by a name it makes must say what else it imports, as the lazy package of operators does.
DYNAMIC = {"whitewater/application.py", "whitewater/features/__init__.py"}
PACKAGE = {
    "tiny/__init__.py": "",
    "tiny/steps/__init__.py": "",
    "tiny/steps/count.py": '''\
"""Step `count`."""
from typing import TYPE_CHECKING
import tiny.aliased as other
from tiny import optional
from tiny.config import Count
from tiny.exported import public
from tiny.helper import double
from tiny.star import *
from ..relative import shift
if TYPE_CHECKING:
    from tiny.types import Row
else:
    from tiny.at_run_time import Row
def count(rows: Row) -> int:
    """Count rows."""
    from tiny.within import inner
    try:
        from tiny.fallback import quick
    except ImportError:
        from tiny.slow import quick
    return inner(double(rows))  # each twice
''',
    "tiny/steps/other.py": "from tiny.config import Other\nSETTINGS = Other\n",
    "tiny/helper.py": "import tiny.helper_of_helper\nfrom whitewater.extra import scale\ndef double(x): return 2 * x\n",
    "tiny/exported/__init__.py": "from tiny.exported.hidden import public\n",
    "tiny/lazy/__init__.py": '''\
from importlib import import_module
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from tiny.lazy.operator import Operator
def __getattr__(name): return getattr(import_module(f"tiny.lazy.{name.lower()}"), name)
''',
    "tiny/optional.py": "from tiny.lazy import Operator\n",
    "tiny/config.py": '''\
from whitewater.config.base import Section
from pydantic import Field
from tiny.bases import Base as Below
LOWEST, HIGHEST = 0, 9
NAMES = ("a",)
NAMES += ("b",)
class Range(Section):
    low: int = LOWEST
class Count(Below):
    """How to count."""
    names: tuple[str, ...] = Field(NAMES, description="Names.")
    within: "Range" = Field(Range(), description="Bounds.")
class Other(Section):
    high: int = Field(HIGHEST, description="The highest.")
''',
    "whitewater/extra.py": "def scale(x): return x\n",
} | {
    f"tiny/{name}.py": f"{name.rpartition('/')[2]} = 1\nraise RuntimeError('executed')\n"
    for name in (
        "aliased", "at_run_time", "bases", "exported/hidden", "fallback", "helper_of_helper", "lazy/operator",
        "relative", "slow", "star", "types", "within",
    )
}  # fmt: skip
Digest = Callable[..., str]


@pytest.fixture
def digest(tmp_path: Path) -> Digest:
    """Writes the package with changes, each time anew, and returns the digest of a step."""
    numbers = count()

    def written(changes: Mapping[str, str] | None = None, *, step: str = "count") -> str:
        folder = tmp_path / str(next(numbers))
        for name, text in {**PACKAGE, **(changes or {})}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return code_digest(f"tiny.steps.{step}", folder)

    return written


def replaced(file: str, old: str, new: str) -> dict[str, str]:
    assert old in PACKAGE[file]
    return {file: PACKAGE[file].replace(old, new)}


@pytest.mark.parametrize("file", sorted(set(PACKAGE) - {"tiny/types.py", "tiny/steps/other.py", "tiny/config.py"}))
def test_an_edit_of_the_step_or_of_a_module_that_it_reaches_counts(digest: Digest, file: str) -> None:
    assert digest({file: PACKAGE[file] + "edited = 1\n"}) != digest()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tiny/types.py": "edited = 1\n", "tiny/steps/other.py": "edited = 1\n", "tiny/unused.py": ""},
        replaced("tiny/steps/count.py", "  # each twice", ""),
        replaced("tiny/steps/count.py", '"""Count rows."""', '"""Count them."""\n'),
        replaced("tiny/steps/count.py", '    """Count rows."""\n', ""),
        replaced("tiny/steps/count.py", '"""Step `count`."""\n', "\n\n\n"),
        replaced("tiny/steps/count.py", "    from tiny.types import Row", "    from tiny.unused import Row, Column"),
        replaced("tiny/config.py", '"Names."', '"The names."'),
        replaced("tiny/config.py", '"""How to count."""', '"""How."""'),
        replaced("tiny/config.py", "class Other(Section):\n", "class Other(Section):\n    more: int = 1\n"),
        replaced("tiny/config.py", "LOWEST, HIGHEST = 0, 9\n", "\n\nLOWEST, HIGHEST = 0, 9\n"),
    ],
)
def test_what_does_not_run_with_the_step_does_not_count(digest: Digest, changes: Mapping[str, str]) -> None:
    assert digest(changes) == digest()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Field(NAMES,", "Field((),"),
        ('("a",)', '("c",)'),
        ('("b",)', '("c",)'),
        ("LOWEST, HIGHEST = 0, 9", "LOWEST, HIGHEST = 1, 9"),
        ("    low: int", "    low: float"),
        ("Base as Below", "Above as Below"),
        ("class Count(Below)", "class Count(Section)"),
        ("class Other", 'Count.model_rebuild()\nclass Other'),
    ],
)  # fmt: skip
def test_all_that_a_section_of_the_settings_refers_to_counts(digest: Digest, old: str, new: str) -> None:
    changes = replaced("tiny/config.py", old, new) | {"tiny/bases.py": "Base = Above = 1\n"}
    assert digest(changes) != digest({"tiny/bases.py": changes["tiny/bases.py"]})


def test_a_module_of_settings_that_is_imported_whole_counts_whole(digest: Digest) -> None:
    whole = replaced("tiny/steps/other.py", "from tiny.config import Other", "from tiny import config\nOther = config")
    assert digest({**whole, **replaced("tiny/config.py", "low: int", "low: float")}, step="other") != digest(
        whole, step="other"
    )


def test_a_module_of_a_lazy_package_brings_none_of_the_others(digest: Digest) -> None:
    step = {"tiny/steps/other.py": "from tiny.lazy.own import own\n", "tiny/lazy/own.py": "own = 1\n"}
    for edited, counts in (
        ("tiny/lazy/operator.py", False),
        ("tiny/lazy/__init__.py", True),
        ("tiny/lazy/own.py", True),
    ):
        text = {**PACKAGE, **step}[edited]
        changed = digest({**step, edited: f"{text}edited = 1\n"}, step="other")
        assert (changed != digest(step, step="other")) == counts


def test_the_digest_does_not_depend_on_what_was_asked_before(tmp_path: Path, digest: Digest) -> None:
    other = {"tiny/steps/other.py": "from tiny import config\n"}
    alone = digest(other, step="other")
    digest(other)
    assert code_digest("tiny.steps.other", tmp_path / "1") == alone


def test_each_file_is_parsed_once(tmp_path: Path, digest: Digest, monkeypatch: pytest.MonkeyPatch) -> None:
    parse, seen = ast.parse, Counter[bytes]()

    def counted(source: bytes) -> Any:
        seen[source] += 1
        return parse(source)

    monkeypatch.setattr(ast, "parse", counted)
    unlike = {name: f"{text}\n# {name}" for name, text in PACKAGE.items()}
    digest(unlike)
    code_digest("tiny.steps.other", tmp_path / "0")
    assert set(seen.values()) == {1}
    assert len(seen) > len(PACKAGE) - 2


@pytest.mark.parametrize("is_installed", [False, True], ids=["the step is in a project", "the step is installed"])
def test_packages_installed_beside_the_library_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_installed: bool
) -> None:
    site = tmp_path / "site-packages"
    folder = site if is_installed else tmp_path / "project"
    files = {
        folder / "own/steps/count.py": "import others, own.helper, whitewater.scaling\n",
        folder / "own/helper.py": "from others.deep import value\n",
        site / "whitewater/scaling.py": "import others\n",
        site / "others/__init__.py": "from others import deep\n",
        site / "others/deep.py": "value = 1\n",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr("whitewater.code_digest.LIBRARY", site)
    reached = {module for module, _ in reachable_parts("own.steps.count", folder)}
    assert reached == {"own.steps.count", "own.helper", "whitewater.scaling"}


def test_a_step_without_a_module_is_an_error(digest: Digest) -> None:
    with pytest.raises(ConfigError, match=r"tiny/steps/missing\.py is missing"):
        digest(step="missing")


def test_no_other_module_of_ours_imports_by_a_name_that_it_makes() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(r"\b(import_module|__import__|run_module|run_path)\(", path.read_text())
    }
    assert found - {"whitewater/workflow.py"} == DYNAMIC
