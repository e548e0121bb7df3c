"""The results as text tables."""

from __future__ import annotations

from collections.abc import Sequence

from peers import Peers
from results import (
    COLD,
    LOAD,
    MSM,
    OURS,
    PEAK,
    PROCESS,
    PROCESS_CPU,
    PROVE,
    PROVE_CPU,
    READY_PEAK,
    VERIFIED,
    Results,
    targets,
)

MIB = float(1 << 20)


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """One aligned table: the first column to the left, the others to the right."""
    if not rows:
        return
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    print(f"\n{title}")
    for row in (header, ["-" * width for width in widths], *rows):
        first, *others = zip(row, widths, strict=True)
        print("  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]))


class Tables:
    def __init__(self, results: Results, peers: Peers) -> None:
        self.results = results
        self.peers = peers

    def cell(self, case: str, what: str, system: str, digits: int = 3) -> str:
        """ "median (min-max)", or why there is none."""
        median = self.results.median(case, what, system)
        if median is None:
            return "-" if system == OURS or self.peers.has(system) else "not installed"
        low, high = self.results.range(case, what, system)
        return f"{median:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"

    def seconds(self, title: str, what: str, peers: Sequence[str]) -> None:
        rows = []
        for case in self.results.cases(what):
            row = [case, self.cell(case, what, OURS)]
            for peer in peers:
                row += [self.cell(case, what, peer), self._ratio(case, what, peer)]
            rows.append(row)
        header = ["case", OURS, *(name for peer in peers for name in (peer, "ratio"))]
        show(title, header, rows)

    def _ratio(self, case: str, what: str, peer: str) -> str:
        ours, theirs = self.results.median(case, what, OURS), self.results.median(case, what, peer)
        return f"{ours / theirs:.2f}" if ours and theirs else ""

    def memory(self) -> None:
        base = self.results.median("", READY_PEAK, OURS)
        rows = []
        for case in self.results.cases(PEAK):
            size = self.results.facts[case]["input_bytes"]
            over = self.results.over_ready(case)
            over_cells = ["", ""] if over is None else [f"{over / MIB:.1f}", f"{over / size:.2f}"]
            peaks = [self._mib(case, system) for system in (OURS, "snarkjs", "groth16py")]
            rows.append([case, f"{size / MIB:.1f}", peaks[0], *over_cells, *peaks[1:]])
        title = "Peak resident memory of the whole process, MiB"
        if base is not None:
            title += f" (a process that is ready to prove, and ends: {base / MIB:.1f})"
        header = ["case", "key + witness", OURS, "over ready", "over / inputs", "snarkjs", "groth16py"]
        show(title, header, rows)

    def _mib(self, case: str, system: str) -> str:
        median = self.results.median(case, PEAK, system)
        if median is None:
            return "-" if system == OURS or self.peers.has(system) else "not installed"
        return f"{median / MIB:.1f}"

    def verified(self) -> None:
        rows = [
            [case, self.cell(case, PROVE, OURS), self.cell(case, VERIFIED, OURS)]
            for case in self.results.cases(VERIFIED)
        ]
        show("Prove with the key loaded, seconds: what verifying each proof adds", ["case", PROVE, VERIFIED], rows)

    def loading(self) -> None:
        def milliseconds(case: str, system: str) -> str:
            median = self.results.median(case, LOAD, system)
            return "" if median is None else f"{1000 * median:.2f}"

        rows = []
        for case in self.results.cases(LOAD):
            size = self.results.facts[case]["key_bytes"]
            rows.append([case, f"{size / MIB:.1f}", milliseconds(case, OURS), milliseconds(case, "groth16py")])
        show("Loading a key, milliseconds", ["case", "MiB", OURS, "groth16py"], rows)

    def targets(self) -> bool:
        """Print every target; True when none failed."""
        judged = targets(self.results)
        rows = [[t.name, "" if t.ratio is None else f"{t.ratio:.2f}", f"{t.limit:.2f}", t.verdict] for t in judged]
        show("Targets: ratio of medians, at most the limit", ["target", "ratio", "limit", "verdict"], rows)
        return all(t.verdict != "FAIL" for t in judged)

    def all(self) -> bool:
        process_peers = ("snarkjs", "groth16py")
        self.seconds("Whole process with a warm compile cache, wall seconds: median (min-max)", PROCESS, process_peers)
        self.seconds("Whole process, CPU seconds of all cores", PROCESS_CPU, process_peers)
        self.seconds("Prove with the key loaded and no verification, wall seconds", PROVE, ("groth16py", "snarkjs"))
        self.seconds("Prove with the key loaded, CPU seconds of all cores", PROVE_CPU, ("groth16py", "snarkjs"))
        self.verified()
        self.seconds("MSM of full-size scalars, wall seconds", MSM, ("py_arkworks", "zksnake"))
        self.loading()
        self.memory()
        self.seconds("First proof with nothing compiled, wall seconds", COLD, ())
        return self.targets()
