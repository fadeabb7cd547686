"""Lines of device code that no scenario runs are found, so that the contract cannot pass by looking away."""

from pathlib import Path

from tests.contract.executed import executed_lines, handles_arrays, never_run
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
    return values * 3


def described(name):
    return name.upper()
"""


def test_lines_of_device_code_that_did_not_run_are_named(tmp_path: Path) -> None:
    path = tmp_path / "steps.py"
    path.write_text(SOURCE)
    assert handles_arrays(path)
    run = {(str(path), "doubled", line) for line in (3, 5, 6, 9, 10, 11)}
    # The lambda was made, not called; the other function never began. Lines that raise, or lead to nothing else, and
    # functions of the host are left out.
    assert never_run(path, run) == ["steps.py:6: later = lambda: values * 2", "steps.py:15: return values * 3"]
    assert "steps.py:9: except TypeError:" in never_run(path, run - {(str(path), "doubled", 9)})
    assert never_run(path, run, without={"doubled"}) == ["steps.py:15: return values * 3"]
    everything = {*run, (str(path), "doubled.<locals>.<lambda>", 6), (str(path), "tripled", 15)}
    assert never_run(path, everything) == []


def test_what_is_left_for_the_cpu_is_not_a_line_of_device_code(tmp_path: Path) -> None:
    path = tmp_path / "steps.py"
    path.write_text("""
def doubled(device, values):
    if device.name == "gpu":
        return gpu_doubled(values)
    return cpu_doubled(values)


def tripled(device, values):
    if device.name == "gpu":
        gpu_triple(values)
    elif values.packed:
        cpu_triple(values)
    else:
        triple(values)
    return values
""")
    assert [line.split(":")[1] for line in never_run(path, set())] == ["3", "4", "9", "10", "15"]


def test_lines_that_run_are_seen() -> None:
    device = resolve("cpu")
    with executed_lines() as lines:
        hashing.hash_int64(device.xp, device.xp.zeros(3, "int64"))
    files = {Path(file).name: name for file, name, _ in lines if name == "hash_int64"}
    assert files == {"hashing.py": "hash_int64"}
