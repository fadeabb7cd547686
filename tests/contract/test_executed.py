"""Lines of device code that no scenario runs are found, so that the contract cannot pass by looking away."""

from pathlib import Path

from tests.contract.executed import device_code, executed_lines, never_run
from whitewater.engines import resolve
from whitewater.tables import hashing

SOURCE = """
def doubled(values, device):
    if device is None:
        raise ValueError("no device")
    try:
        later = lambda: values * 2
    except KeyError as error:
        raise ValueError("no key") from error
    except TypeError:
        later = None
    return later()


def tripled(values: Array):
    if device.name == "gpu":
        return values * 3
    return cpu_tripled(values)


def quadrupled(values: Array):
    if device.name == "gpu":
        gpu_quadruple(values)
    elif values.packed:
        quadruple(values)
    return values


def described(name):
    return name.upper()
"""


def test_lines_of_device_code_that_did_not_run_are_named(tmp_path: Path) -> None:
    path = tmp_path / "steps.py"
    path.write_text(SOURCE)
    assert device_code(tmp_path) == [path]
    # The lambda was made, not called. Left out are lines that raise, or lead to nothing else, or are the CPU's, and
    # functions of the host.
    run = {(str(path), "doubled", line) for line in (3, 5, 6, 9, 10, 11)}
    missed = never_run(path, run)
    assert [line.split(":")[1] for line in missed] == ["6", "15", "16", "21", "22", "25"]
    assert missed[0] == "steps.py:6: later = lambda: values * 2"
    assert "steps.py:9: except TypeError:" in never_run(path, run - {(str(path), "doubled", 9)})
    assert never_run(path, run, without={"doubled"}) == missed[1:]
    lines = {(str(path), name, int(line.split(":")[1])) for line in missed
             for name in ("doubled.<locals>.<lambda>", "tripled", "quadrupled")}  # fmt: skip
    assert never_run(path, run | lines) == []


def test_lines_that_run_are_seen() -> None:
    device = resolve("cpu")
    with executed_lines() as lines:
        hashing.hash_int64(device.xp, device.xp.zeros(3, "int64"))
    files = {Path(file).name: name for file, name, _ in lines if name == "hash_int64"}
    assert files == {"hashing.py": "hash_int64"}
