"""`whitewater completion`: bash itself completes with the script."""

import subprocess

import pytest

from whitewater.cli.completion import main


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["whitewater", "ta"], "taxi"),
        (["whitewater", "doc"], "doctor"),
        (["whitewater", "taxi", "cl"], "clean"),
        (["whitewater", "genomics", "cl"], ""),
        (["whitewater", "pagerank", "qu"], "query"),
        (["whitewater", "cluster", "sto"], "stop"),
    ],
)
def test_bash_completes_commands_applications_and_steps(
    typed: list[str], completed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 0
    line = f"COMP_WORDS=({' '.join(typed)})\nCOMP_CWORD={len(typed) - 1}\n_whitewater"
    ask = f'{capsys.readouterr().out}\n{line}\necho "${{COMPREPLY[@]}}"'
    assert subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True).stdout.strip() == completed
