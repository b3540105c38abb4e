#!/usr/bin/env python3
"""Counts the instructions per row of preparing and probing each kind of index, with valgrind. Unlike times, these
counts do not depend on other load. They are compared with benches/counts.json; more than 5% above the recorded count is
an error.

    make bench-counts                 # compare
    make bench-counts RECORD=1        # compare and record

The count of one repetition is (count of three - count of one) / 2, which leaves out start-up and set-up. It depends on
the compiler and on the features of the processor: with another of either, record the counts of the previous commit
first.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

ROWS = 65_536
RECORD = pathlib.Path(__file__).with_name("counts.json")
LIMIT = 1.05


def executable() -> str:
    """Builds benches/counts.rs and returns the path of the program."""
    command = ["cargo", "bench", "--locked", "--bench", "counts", "--no-run", "--message-format=json"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    artifacts = (json.loads(line) for line in lines)
    return next(a["executable"] for a in artifacts if a.get("executable") and a["target"]["name"] == "counts")


def instructions(program: str, *arguments: object) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, *map(str, arguments)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    match = re.search(r"Collected : (\d+)", text)
    if match is None:
        sys.exit(f"valgrind counted nothing: {text}")
    return int(match[1])


def main() -> None:
    if shutil.which("valgrind") is None:
        sys.exit("bench-counts needs valgrind, which your system's packages have")
    program = executable()
    kinds = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    counts, worse = {}, []
    print(f"{'instructions per row':24} {'now':>8} {'recorded':>9}")
    for case in (f"{kind}/{work}" for kind in kinds for work in ("prepare", "probe")):
        once, thrice = (instructions(program, *case.split("/"), n) for n in (1, 3))
        counts[case] = round((thrice - once) / 2 / ROWS, 1)
        before = recorded.get(case)
        more = before is not None and counts[case] > before * LIMIT
        worse += [case] * more
        print(f"{case:24} {counts[case]:8.1f} {before or '-':>9}{'   more than 5% above' * more}", flush=True)
    if "--record" in sys.argv[1:]:
        RECORD.write_text(json.dumps(counts, indent=2) + "\n")
    elif worse:
        sys.exit(f"more than 5% above what is recorded: {', '.join(worse)}")


if __name__ == "__main__":
    main()
