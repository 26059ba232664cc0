"""Figures of the documentation, as SVG: curves side by side, of the same contenders in each panel."""

from pathlib import Path

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
WIDEST = 3  # panels in a line


def draw(path, panels, *, x, y, log=False):
    """Draw curves to a file; text stays text, and the same curves make the same bytes.

    Parameters
    ----------
    path : path
        Of an SVG file; `FIGURES` has those of the pages on papers.
    panels : dict of str to dict of str to (array, array)
        By title: by contender: its curve, places from left to right and values. A contender has the same
        colour in each panel, whether all panels have it or not.
    x, y : str
        What the axes show.
    log : bool, default=False
        Whether places are shown by their logarithms.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    n_columns = min(WIDEST, len(panels))
    n_rows = -(-len(panels) // n_columns)
    contenders = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    looks = {
        name: {"color": f"C{n % 10}", "ls": "-" if n < 10 else "--"} for n, name in enumerate(contenders)
    }
    legend = 0.2 * -(-len(contenders) // 2)  # its lines are two contenders wide
    figure = Figure(figsize=(max(3.6 * n_columns, 6), 2.6 * n_rows + legend), layout="constrained")
    places = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    drawn = {}
    for place, (title, curves) in zip(places, panels.items(), strict=False):
        for name, curve in curves.items():
            drawn[name] = place.plot(*curve, lw=1.2, **looks[name])[0]
        place.set(title=title, xlabel=x, ylabel=y, xscale="log" if log else "linear")
    for place in places[len(panels) :]:
        place.axis("off")
    figure.legend([drawn[name] for name in contenders], contenders, loc="outside lower center", ncols=2)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "ranktrees", "path.simplify": True}):
        figure.savefig(path, metadata={"Date": None})
