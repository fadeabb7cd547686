"""The rules: what each finds, why it is slow, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Rule:
    """One slow idiom.

    Attributes
    ----------
    code
        Never given to another rule.
    title
        What was found, as a message says it.
    suggestion
        What to write instead, in a sentence.
    why
        What it costs, with a measurement.
    before, after
        An example that the rule finds, and the same work without it.
    """

    code: str
    title: str
    suggestion: str
    why: str = ""
    before: str = ""
    after: str = ""

    @property
    def explanation(self) -> str:
        """The rule in Markdown, as ``--explain`` prints it and the documentation holds it."""
        parts = [f"## {self.code}: {self.title}", self.suggestion, self.why]
        for label, code in (("Instead of", self.before), ("write", self.after)):
            if code:
                parts += [label, f"```python\n{dedent(code).strip()}\n```"]
        return "\n\n".join(part for part in parts if part) + "\n"


@dataclass(frozen=True)
class Finding:
    """One place that a rule found: lines and columns count from 1; the statement's head ends in ``last_line``."""

    rule: Rule
    line: int
    column: int
    last_line: int
    detail: str = ""

    @property
    def message(self) -> str:
        """The code, what was found, and what to write instead."""
        return f"{self.rule.code} {self.rule.title}{f' ({self.detail})' if self.detail else ''}. {self.rule.suggestion}"


UNREASONED = Rule(
    "WW001",
    "suppression without a known code or a reason",
    "Write `# idiom: WW101 because REASON`; until then it suppresses nothing.",
    "Who reads the loop next must learn why it may stay.",
    "# idiom: WW101",
    "# idiom: WW101 because each row needs the row before it, and there are 12 of them",
)
UNUSED = Rule(
    "WW002",
    "suppression of nothing",
    "Remove the comment: its line has no such finding.",
    "A comment that outlives its loop would hide the next one.",
)
ROW_LOOP = Rule(
    "WW101",
    "loop over the positions of a frame or array",
    "Compute on whole columns or arrays; where each row needs the last, compile the loop with Numba.",
    "Each turn goes through the interpreter, and through pandas' indexing where it is a frame. 100,000 rows took 6.7 s "
    "instead of 0.2 ms with `.iloc`; 1,000,000 elements of an array 0.42 s instead of 0.6 ms. On a GPU each turn "
    "starts kernels for a single element.",
    """
    for row in range(len(trips)):
        trips.loc[row, "speed"] = trips.loc[row, "distance"] / trips.loc[row, "hours"]
    """,
    'trips["speed"] = trips["distance"] / trips["hours"]',
)
ROW_ITERATOR = Rule(
    "WW102",
    "iteration over the rows of a frame",
    "Compute on whole columns; cuDF refuses iterrows and itertuples.",
    "100,000 rows took 3.5 s by `iterrows` and 0.12 s by `itertuples` instead of 0.2 ms.",
    """
    speeds = []
    for trip in trips.itertuples():
        speeds.append(trip.distance / trip.hours)
    """,
    'speeds = trips["distance"] / trips["hours"]',
)
COLUMN_ITERATION = Rule(
    "WW103",
    "iteration over the values of a column",
    "Compute on the whole column; cuDF refuses to iterate. A few values for people to read: `.tolist()` on the host.",
    "1,000,000 rows took 0.40 s by `zip` of two columns instead of 1 ms.",
    'speeds = [distance / hours for distance, hours in zip(trips["distance"], trips["hours"])]',
    'speeds = trips["distance"] / trips["hours"]',
)
GROWING_FRAME = Rule(
    "WW201",
    "frame that grows in a loop",
    "Append the parts to a list, and concatenate once after the loop.",
    "Each turn copies all rows that are there already: time grows with the square. 1000 blocks of 100 rows took 0.26 s "
    "instead of 16 ms; 2000 rows added by `.loc[len(frame)]` 1.3 s instead of 1 ms; ten times the rows cost a hundred "
    "times the copies.",
    """
    trips = pd.DataFrame()
    for path in paths:
        trips = pd.concat([trips, pd.read_parquet(path)])
    """,
    "trips = pd.concat([pd.read_parquet(path) for path in paths])",
)
GROWING_ARRAY = Rule(
    "WW202",
    "array that grows in a loop",
    "Append to a list and make the array after the loop, or make it once at its size and fill it.",
    "Each turn copies the array: time grows with the square. 100,000 numbers took 2.9 s by `np.append` instead of "
    "12 ms.",
    """
    sums = np.array([])
    for block in blocks:
        sums = np.append(sums, block.sum())
    """,
    "sums = np.array([block.sum() for block in blocks])",
)
SAME_FILE = Rule(
    "WW203",
    "the same file read at each turn",
    "Read it once before the loop.",
    "A CSV of 100,000 rows read 20 times took 2.0 s instead of 0.1 s.",
    """
    for zone in zones:
        trips = pd.read_csv("trips.csv")
        fares[zone] = trips.loc[trips["zone"] == zone, "fare"].mean()
    """,
    'fares = pd.read_csv("trips.csv").groupby("zone")["fare"].mean()',
)
FUNCTION_OF_ROWS = Rule(
    "WW301",
    "Python function called for each row or value",
    "Use operators and methods of whole columns, `where`, a merge, or a dictionary in `map`.",
    "100,000 rows took 1.5 s by `apply(axis=1)` instead of 0.1 ms; 1,000,000 values 1.1 s by `Series.apply` instead of "
    "1 ms. cuDF compiles some such functions and refuses the others.",
    'trips["speed"] = trips.apply(lambda trip: trip["distance"] / trip["hours"], axis=1)',
    'trips["speed"] = trips["distance"] / trips["hours"]',
)
FUNCTION_OF_GROUPS = Rule(
    "WW302",
    "Python function called for each group",
    "Use the aggregations that are named by strings, and compute with their columns.",
    "100,000 rows in 10,000 groups took 1.3 s by `agg` of a lambda instead of 11 ms, and 3.8 s by `transform` instead "
    "of 3 ms. cuDF refuses functions there.",
    """
    spread = trips.groupby("zone")["fare"].agg(lambda fares: fares.max() - fares.min())
    """,
    """
    extremes = trips.groupby("zone", sort=True)["fare"].agg(["max", "min"])
    spread = extremes["max"] - extremes["min"]
    """,
)
DISGUISED_LOOP = Rule(
    "WW303",
    "Python loop that looks like an array function",
    "Use array operations and `where`, or compile it: `numba.vectorize`.",
    "`np.vectorize`, `np.frompyfunc` and `np.apply_along_axis` call the function once for each element or row: "
    "1,000,000 elements took 0.25 s instead of 6 ms. CuPy has no frompyfunc.",
    """
    discount = np.vectorize(lambda fare: fare / 2 if fare > 50 else fare)
    fares = discount(fares)
    """,
    "fares = np.where(fares > 50, fares / 2, fares)",
)
SAME_COPY = Rule(
    "WW401",
    "the same data copied between host and device at each turn",
    "Copy it once before the loop.",
    "The copy takes longer than the work: in the published search of ridge's penalties (28 MB, 10 penalties, 5 folds) "
    "the data moved 100 times, and the GPU took 1 min 17 s where the CPU took 4.9 s. That is the source's "
    "measurement, not ours.",
    """
    for alpha in alphas:
        errors.append(error_of(alpha, device.from_host(genotypes)))
    """,
    """
    on_device = device.from_host(genotypes)
    for alpha in alphas:
        errors.append(error_of(alpha, on_device))
    """,
)
ELEMENT_COPY = Rule(
    "WW402",
    "values fetched from the device one at a time",
    "Compute on the device with whole arrays, or fetch the array once: `device.to_host(array)`.",
    "Each fetch waits until the device has finished, and moves a few bytes. Not measured here: it needs a GPU.",
    """
    ranks = device.from_host(host_ranks)
    for vertex in range(vertices):
        lines.append(f"{vertex} {float(ranks[vertex])}")
    """,
    """
    for vertex, rank in enumerate(device.to_host(ranks).tolist()):
        lines.append(f"{vertex} {rank}")
    """,
)
SCALAR_SUM = Rule(
    "WW403",
    "sum on the host of results fetched at each turn",
    "Add up on the device, and convert to a number once after the loop.",
    "`float()`, `int()` and `.item()` of a result wait until the device has finished, so that it idles while Python "
    "prepares the next turn. Not measured here: it needs a GPU.",
    """
    for block in blocks:
        total += float(xp.sum(block))
    """,
    """
    for block in blocks:
        total = total + xp.sum(block)
    total = float(total)
    """,
)
COMPUTE_IN_LOOP = Rule(
    "WW501",
    "compute() in a loop",
    "Collect the lazy results, and compute all at once: `dask.compute(*results)`; or persist what they share before.",
    "Each call runs the graph anew, from the files on. 12 statistics of a CSV of 1,000,000 rows took 6.7 s "
    "instead of 0.51 s.",
    """
    for column in columns:
        means[column] = trips[column].mean().compute()
    """,
    "means = dask.compute({column: trips[column].mean() for column in columns})[0]",
)

RULES: dict[str, Rule] = {
    rule.code: rule
    for rule in (
        UNREASONED, UNUSED, ROW_LOOP, ROW_ITERATOR, COLUMN_ITERATION, GROWING_FRAME, GROWING_ARRAY, SAME_FILE,
        FUNCTION_OF_ROWS, FUNCTION_OF_GROUPS, DISGUISED_LOOP, SAME_COPY, ELEMENT_COPY, SCALAR_SUM, COMPUTE_IN_LOOP,
    )
}  # fmt: skip
