"""Step `plot`: draw the figures and write each in every format."""

from collections.abc import Callable
from pathlib import Path

from whitewater.graphs.graph_folder import open_graph
from whitewater.io.store import read_json
from whitewater.script import main
from whitewater.step import Outputs, Run
from whitewater_apps.pagerank.config import Plot
from whitewater_apps.pagerank.headline import read_column, read_names


def plot(
    run: Run[Plot], *, graph: Path, vertices: Path, convergence: Path, communities: Path, edges: Path, plots: Outputs
) -> None:
    """Draw the ranks, the degrees, the convergence, the sizes of communities, and the neighborhood of the top vertices.

    The file name gives figure and format: ``ranks.png``.
    """
    from matplotlib.figure import Figure

    from whitewater.figures import style
    from whitewater_apps.pagerank import figures

    def neighborhood() -> Figure:
        ranks = read_column(vertices, "rank")
        subgraph = figures.find_neighborhood(open_graph(graph), ranks, top=run.settings.top)
        names = read_names(vertices, subgraph.vertices[: subgraph.top].tolist())
        return figures.neighborhood(subgraph, names=names, ranks=ranks, community=read_column(vertices, "community"))

    draw: dict[str, Callable[[], Figure]] = {
        "ranks": lambda: figures.ranks(read_column(vertices, "rank"), convergence=read_json(convergence)),
        "degrees": lambda: figures.degrees(
            read_column(vertices, "in_degree"), read_column(vertices, "out_degree"), counts=read_json(edges)
        ),
        "convergence": lambda: figures.convergence(read_json(convergence)),
        "communities": lambda: figures.communities(read_json(communities), vertices=read_json(convergence)["vertices"]),
        "neighborhood": neighborhood,
    }
    run.note(pictures=style.draw_all(draw, plots))


if __name__ == "__main__":
    main(plot)
