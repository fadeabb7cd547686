"""Comments that let a finding stand, with a reason: ``# idiom: WW101 because each row needs the last``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from whitewater.idioms.rules import RULES, UNREASONED, UNUSED, Finding, Rule

_COMMENT = re.compile(r"#\s*idiom\s*:(?P<text>.*)")
_REASONED = re.compile(r"\s*(?P<codes>WW\d+(?:\s*,\s*WW\d+)*)\s+because\s+\S")


@dataclass(frozen=True)
class Comment:
    """A comment: its line and column, which count from 1, its text, and whether it has the line for itself."""

    line: int
    column: int
    text: str
    is_alone: bool


@dataclass
class _Suppression:
    comment: Comment
    codes: tuple[str, ...]
    used: set[str] = field(default_factory=set)

    def covers(self, finding: Finding) -> bool:
        """Whether it stands at the end of one of the finding's lines, or alone on the line above."""
        first = finding.line - 1 if self.comment.is_alone else finding.line
        last = finding.line if self.comment.is_alone else finding.last_line
        return finding.rule.code in self.codes and first <= self.comment.line <= last


def without_suppressed(findings: Iterable[Finding], comments: Iterable[Comment]) -> Iterator[Finding]:
    """Yield the findings that no comment lets stand, and those about the comments themselves."""
    written = [(comment, _codes(comment)) for comment in comments]
    suppressions = [_Suppression(comment, codes) for comment, codes in written if codes]
    yield from (_about(UNREASONED, comment) for comment, codes in written if codes == ())
    for finding in findings:
        covering = [each for each in suppressions if each.covers(finding)]
        for each in covering:
            each.used.add(finding.rule.code)
        if not covering:
            yield finding
    yield from (
        _about(UNUSED, each.comment, code) for each in suppressions for code in each.codes if code not in each.used
    )


def _about(rule: Rule, comment: Comment, detail: str = "") -> Finding:
    return Finding(rule, comment.line, comment.column, comment.line, detail)


def _codes(comment: Comment) -> tuple[str, ...] | None:
    """Return the codes of a suppression: none where it is not understood or has no reason; None for other comments."""
    marked = _COMMENT.match(comment.text)
    if not marked:
        return None
    reasoned = _REASONED.match(marked["text"])
    codes = tuple(re.findall(r"WW\d+", reasoned["codes"])) if reasoned else ()
    return codes if all(_can_be_suppressed(code, RULES) for code in codes) else ()


def _can_be_suppressed(code: str, rules: Mapping[str, object]) -> bool:
    return code in rules and code not in {UNREASONED.code, UNUSED.code}
