"""The results as a table for people, in Markdown: one row a workload, at one thread and at two.

    python -m benchmarks.table [--breadth] [DIR]

Reads ``cpu.t1.json`` and ``cpu.t2.json`` in DIR, or ``breadth.*``, of ``benchmarks.cpu``. Times are medians in
milliseconds at one thread, the best of cold and warm for each; a ratio is the best peer's time ÷ ours. The products of
the harness are listed apart, with the geometric mean of their ratios, and so are workloads that were unseen.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.breadth import SEEN
from benchmarks.contest import OURS
from benchmarks.newcomers import NEWCOMERS
from benchmarks.resized import RESIZED
from benchmarks.strangers import STRANGERS
from benchmarks.unseen import UNSEEN
from benchmarks.workloads import HARNESS, WORKLOADS, Workload

Row = Mapping[str, Any]
KINDS = ("cold", "warm")
HERE = Path(__file__).parent / "results"

_HEAD = (
    "| workload | target | ours | of the limit | best peer | ratio cold | warm | 2 threads: cold | warm |",
    "|---|---|---|---|---|---|---|---|---|",
)


def rows_of(path: Path) -> dict[str, Row]:
    """The rows of a file of results, by workload; none if there is no file."""
    return {row["workload"]: row for row in json.loads(path.read_text())["rows"]} if path.exists() else {}


def line(workload: Workload, one: Row, two: Row | None) -> str:
    """One row of the table."""
    times = {name: found["median"] for name, found in one["seconds"].items()}
    mine = {name: seconds for name, seconds in times.items() if _contestant(name) == OURS.name}
    peers = {name: seconds for name, seconds in times.items() if name not in mine}
    ours, peer = min(mine.values()), min(peers, key=lambda name: peers[name])
    cells = (
        workload.title or workload.name,
        f"{one['target']:g}",
        _ms(ours),
        f"{one['limit_s'] / ours:.0%}".replace("%", " %"),
        f"{_contestant(peer)} {_ms(peers[peer])}",
        *(_ratio(row, kind) for row in (one, two) for kind in KINDS),
    )
    return f"| {' | '.join(cells)} |"


def breadth(ones: Mapping[str, Row], twos: Mapping[str, Row]) -> list[str]:
    """The rows of workloads without targets that have results, the last that were written down first, with means."""
    lines: list[str] = []
    for group in (RESIZED, STRANGERS, NEWCOMERS, UNSEEN, SEEN):
        known = [w for w in group if w.name in ones]
        if known:
            lines += [*_HEAD, *(line(w, ones[w.name], twos.get(w.name)) for w in known), _mean(known, ones, twos), ""]
    return lines


def table(ones: Mapping[str, Row], twos: Mapping[str, Row]) -> list[str]:
    """The rows of all workloads that have results, those of the harness last, with their mean."""
    harness = {f"w1-{m}x{k}x{n}" for m, k, n in HARNESS}
    known = [w for w in WORKLOADS if w.name in ones]
    lines = [*_HEAD, *(line(w, ones[w.name], twos.get(w.name)) for w in known if w.name not in harness)]
    products = [w for w in known if w.name in harness]
    if products:
        lines += ["", *_HEAD, *(line(w, ones[w.name], twos.get(w.name)) for w in products), _mean(products, ones, twos)]
    return lines


def _mean(products: Sequence[Workload], ones: Mapping[str, Row], twos: Mapping[str, Row]) -> str:
    cells = []
    for rows in (ones, twos):
        for kind in KINDS:
            ratios = [rows[w.name]["ratios"].get(kind) for w in products if w.name in rows]
            known = [ratio for ratio in ratios if ratio is not None]
            cells.append(f"{statistics.geometric_mean(known):.2f}" if known else "")
    targets = {w.targets[0] for w in products}
    target = f"{targets.pop():g}" if len(targets) == 1 else ""
    return f"| geometric mean | {target} | | | | {' | '.join(cells)} |"


def _contestant(name: str) -> str:
    return name.rpartition(" ")[0]


def _ratio(row: Row | None, kind: str) -> str:
    return f"{row['ratios'][kind]:.2f}" if row is not None and kind in row["ratios"] else ""


def _ms(seconds: float) -> str:
    """Three digits."""
    return f"{seconds * 1e3:.3g}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, default=HERE, metavar="DIR")
    parser.add_argument("--breadth", action="store_true", help="of the workloads of benchmarks/breadth.py, unseen.py")
    options = parser.parse_args(arguments)
    name, lines = ("breadth", breadth) if options.breadth else ("cpu", table)
    print("\n".join(lines(*(rows_of(options.directory / f"{name}.t{threads}.json") for threads in (1, 2)))))


if __name__ == "__main__":
    main()
