#!/usr/bin/env python3
"""Writes the measurements of benches/peers.py into docs/performance.md, between its markers, and draws
docs/img/peers-*.png.

python benches/report.py target/peers.jsonl
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE, IMAGES = ROOT / "docs" / "performance.md", ROOT / "docs" / "img"
BEGIN, END = "<!-- peers: begin, written by benches/report.py -->", "<!-- peers: end -->"
UNITS = {"small": "microseconds per batch of 4,096 rows", "large": "nanoseconds per row of one probe of 1,000,000 rows"}
CATEGORIES = {
    "limit": "`take` of the known result rows: the least that any join must do",
    "prepared": "prepared once, called per batch",
    "stream": "one long streaming query: no answer per batch, no re-use by a second query",
    "rebuild": "the join as users call it: the build is hashed by every call",
}
COLOURS = {"limit": "#9e9e9e", "prepared": "#1f77b4", "stream": "#8c6bb1", "rebuild": "#d98c5f"}


def name(result):
    return f"{result['engine']}.{result['method']}"


def cases(results, mode):
    return sorted({(r["kind"], r["rows"]) for r in results if r["mode"] == mode})


def figures(results, mode):
    """(category, name) -> {(kind, rows): result}, the faster thread setting of each, without those that failed."""
    got = {}
    for r in results:
        if r["mode"] == mode and "median" in r:
            row = got.setdefault((r["category"], name(r)), {})
            case = r["kind"], r["rows"]
            if case not in row or r["median"] < row[case]["median"]:
                row[case] = r
    return got


def show(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def table(results, mode):
    got, columns = figures(results, mode), cases(results, mode)
    lines = [
        f"| {UNITS[mode]} | " + " | ".join(f"{kind}, {rows:,}" for kind, rows in columns) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for category, meaning in CATEGORIES.items():
        rows = [(key, row) for key, row in got.items() if key[0] == category]
        if rows:
            lines.append(f"| **{meaning}** |" + " |" * len(columns))
        for (_, label), row in sorted(rows, key=lambda item: (not item[0][1].startswith("prejoin"), item[0][1])):
            cells = (show(row[case]["median"]) if case in row else "-" for case in columns)
            lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return lines


def beaten(results, mode):
    """The cases in which another tool is faster than prejoin.join. The limit does not count, since it does not join."""
    got = figures(results, mode)
    ours = got.get(("prepared", "prejoin.join"), {})
    for (category, label), row in sorted(got.items()):
        if category != "limit" and not label.startswith("prejoin"):
            for case, result in row.items():
                if case in ours and result["median"] < ours[case]["median"]:
                    yield f"{label} ({category}) at {case[0]}, {case[1]:,} build rows, {mode} probe"


def preparing(results):
    lines = ["| prejoin.join | prepare, ms | first batch, us | median batch, us |", "|---|---:|---:|---:|"]
    row = figures(results, "small").get(("prepared", "prejoin.join"), {})
    for (kind, rows), r in sorted(row.items()):
        lines.append(f"| {kind}, {rows:,} build rows | {r['setup_ms']:.2f} | {r['first_us']:.1f} | {r['median']:.1f} |")
    return lines


def plot(results, mode, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = [case for case in cases(results, mode) if case[1] > 64]
    across = 2
    down = -(-len(columns) // across)
    figure, axes = plt.subplots(down, across, figsize=(13, 3.6 * down), squeeze=False)
    for axis, case in zip(axes.flat, columns):
        best = {}
        for (category, _), row in figures(results, mode).items():
            if case in row:
                key = row[case]["engine"], category
                best[key] = min(best.get(key, row[case]), row[case], key=lambda r: r["median"])
        bars = sorted(best.items(), key=lambda item: -item[1]["median"])
        labels = [name(r) for _, r in bars]
        axis.barh(labels, [r["median"] for _, r in bars], color=[COLOURS[category] for (_, category), _ in bars])
        for at, (_, r) in enumerate(bars):
            axis.text(r["median"], at, f" {show(r['median'])}", va="center", fontsize=8)
        for label in axis.get_yticklabels():
            label.set_fontweight("bold" if label.get_text().startswith("prejoin") else "normal")
        axis.set_xscale("log")
        axis.margins(x=0.15)
        axis.set_title(f"{case[0]} keys, {case[1]:,} build rows", fontsize=10)
        axis.tick_params(labelsize=8)
    for axis in axes.flat[len(columns) :]:
        axis.axis("off")
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[c]) for c in CATEGORIES]
    figure.legend(handles, CATEGORIES.values(), loc="lower center", ncols=2, fontsize=8, frameon=False)
    figure.suptitle(f"{UNITS[mode]} (median, logarithmic; best method of each engine)")
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main():
    lines = pathlib.Path(sys.argv[1]).read_text().splitlines()
    records = [json.loads(line) for line in lines]
    versions = next(r["versions"] for r in records if "versions" in r)
    results = [r for r in records if "mode" in r]
    text = [BEGIN, "", "Versions: " + ", ".join(f"{k} {v}" for k, v in versions.items() if v) + ".", ""]
    IMAGES.mkdir(exist_ok=True)
    for mode in UNITS:
        plot(results, mode, IMAGES / f"peers-{mode}.png")
        text += [*table(results, mode), "", f"![{UNITS[mode]}](img/peers-{mode}.png)", ""]
    text += ["What the figures of prejoin leave out, preparing, and the very first batch:", "", *preparing(results), ""]
    quicker = [*beaten(results, "small"), *beaten(results, "large")]
    text += ["Where a peer is faster: " + ("; ".join(quicker) if quicker else "nowhere in this run") + ".", "", END]
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    PAGE.write_text(before + "\n".join(text) + rest.split(END)[1])


if __name__ == "__main__":
    main()
