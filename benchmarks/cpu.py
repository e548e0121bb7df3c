"""Measures the CPU backend beside snarkjs, groth16py, zksnake and py_arkworks, in one run on one machine.

    pip install -e ".[bench]"                       groth16py, zksnake, py_arkworks_bls12381
    npm install --prefix .node snarkjs@0.7.6        snarkjs, needs node
    python benchmarks/cpu.py                        or `make bench`, which does all three

Prints a progress line for each case, then tables and the targets with their ratios, and writes
`benchmarks/results/cpu-DATE.json`. README.md here says how to read them. Exit code: 0, or 1 when a target fails.
A peer that is not installed is "not installed" in the tables, and its targets are not measured.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import results as r
from cases import CHAIN, LARGE, MSMS, Case, MsmCase, example_case, shared_cases
from measure import HERE, ROOT, BenchError, JsonProcess, Launcher, Run, commit, interleaved, machine, today
from peers import Peers
from tables import Tables

from cuzk.field.host import decode

LOADS = 20  # times that a key is loaded, each a fraction of a millisecond


class Bench:
    def __init__(self, options: argparse.Namespace, peers: Peers) -> None:
        self.runs: int = options.runs
        self.only: list[str] = options.only
        self.peers = peers
        self.results = r.Results()
        self.start = time.perf_counter()

    def wanted(self, name: str) -> bool:
        return not self.only or any(part in name for part in self.only)

    def progress(self, text: str) -> None:
        print(f"[{time.perf_counter() - self.start:6.1f} s] {text}", flush=True)

    # cases with a key and a witness

    def prepare(self, case: Case) -> bool:
        """Make the case's files where that is possible; False, with a line that says so, where they are absent."""
        if not case.there and case.make is not None:
            self.progress(f"{case.name}: making the key, once")
            case.make()
        if not case.there:
            self.progress(f"{case.name}: skipped, not there: {case.key}")
            return False
        self.record_sizes(case)
        return True

    def record_sizes(self, case: Case) -> None:
        facts = self.results.facts.setdefault(case.name, {})
        facts.update({"curve": case.curve.name, "key_bytes": case.key.stat().st_size, "input_bytes": case.input_bytes})

    def check(self, case: Case) -> None:
        """A proof of each program that writes one, accepted by every independent verifier there is."""
        self.peers.cuzk_process(case)
        facts = self.results.facts[case.name]
        facts["checked_by"] = self.peers.check(case, "cuzk")
        if self.peers.has("snarkjs"):
            self.peers.snarkjs_process(case)
            self.peers.check(case, "snarkjs")
        by = ", ".join(facts["checked_by"]) or "nobody else: no other verifier is installed"
        self.progress(f"{case.name}: proof accepted by {by}; measuring")

    def processes(self, case: Case, runs: int, warm_up: int = 1) -> None:
        measures: dict[str, Callable[[], Run]] = {r.OURS: lambda: self.peers.cuzk_process(case)}
        if self.peers.has("snarkjs"):
            measures["snarkjs"] = lambda: self.peers.snarkjs_process(case)
        if self.peers.has("groth16py") and case.curve.name == "bn254":
            measures["groth16py"] = lambda: self.peers.groth16py_process(case)
        finished = interleaved(measures, runs, warm_up)
        if any(re.search(r"^compile\b", run.output, re.MULTILINE) for run in finished[r.OURS]):
            raise BenchError(f"{case.name}: cuzk compiled during a warm run; did its source change meanwhile?")
        for system, done in finished.items():
            self.results.add(case.name, r.PROCESS, system, [run.wall for run in done])
            self.results.add(case.name, r.PROCESS_CPU, system, [run.cpu for run in done])
            self.results.add(case.name, r.PEAK, system, [run.peak_bytes for run in done])

    def proving(self, case: Case) -> None:
        """In processes that stay, each with its key loaded."""
        with ExitStack() as stack:

            def loaded(system: str) -> JsonProcess:
                worker = stack.enter_context(self.peers.worker(system))
                worker.ask(op="load", key=str(case.key), witness=str(case.witness))
                return worker

            ours = loaded(r.OURS)
            measures: dict[str, Callable[[], dict[str, Any]]] = {
                r.OURS: lambda: ours.ask(op="prove", check=False),
                r.VERIFIED: lambda: ours.ask(op="prove", check=True),
            }
            if self.peers.has("groth16py") and case.curve.name == "bn254":
                arkworks = loaded("groth16py")
                measures["groth16py"] = lambda: arkworks.ask(op="prove", check=True)
            if self.peers.snarkjs and self.peers.snarkjs.library:
                node = loaded("snarkjs")
                measures["snarkjs"] = lambda: node.ask(op="prove")
            done = interleaved(measures, self.runs)
        verified = done.pop(r.VERIFIED)
        self.results.add(case.name, r.VERIFIED, r.OURS, [answer["seconds"] for answer in verified])
        for system, answers in done.items():
            self.results.add(case.name, r.PROVE, system, [answer["seconds"] for answer in answers])
            self.results.add(case.name, r.PROVE_CPU, system, [answer["cpu"] for answer in answers])
        self.results.facts[case.name]["phases"] = verified[-1]["phases"]

    def case(self, case: Case) -> None:
        if not self.wanted(case.name) or not self.prepare(case):
            return
        self.check(case)
        if case is LARGE:
            self.processes(case, min(2, self.runs), warm_up=0)  # for its memory: a snarkjs proof takes some ten seconds
        else:
            self.processes(case, self.runs)
            self.proving(case)

    # the rest

    def msm(self, case: MsmCase) -> None:
        systems = [r.OURS, "zksnake"] + ["py_arkworks"] * (case.group.name == "bls12_381.g1")
        systems = [system for system in systems if system == r.OURS or self.peers.has(system)]
        if not self.wanted(case.name):
            return
        self.progress(f"{case.name}: making points whose sum is known")
        expected = [str(x) for (x,) in decode(case.group.base, case.make()[:, None])]
        base = case.group.base
        with ExitStack() as stack:
            workers = {system: stack.enter_context(self.peers.worker(system)) for system in systems}
            for worker in workers.values():
                worker.ask(
                    op="msm_load",
                    group=case.group.name,
                    points=str(case.points),
                    scalars=str(case.scalars),
                    modulus=str(base.modulus),
                    size=base.bytes,
                )

            def measure(system: str) -> dict[str, Any]:
                answer = workers[system].ask(op="msm")
                if answer["point"] != expected:
                    raise BenchError(f"{case.name}: {system} gives {answer['point']}, the sum is {expected}")
                return answer

            self.progress(f"{case.name}: measuring")
            measures = {system: (lambda system=system: measure(system)) for system in systems}
            for system, answers in interleaved(measures, self.runs).items():
                self.results.add(case.name, r.MSM, system, [answer["seconds"] for answer in answers])
                self.results.add(case.name, r.MSM_CPU, system, [answer["cpu"] for answer in answers])

    def loading(self, cases: list[Case]) -> None:
        """Keys of one curve from the smallest to the largest, turn by turn in one process each."""
        chosen = [case for case in cases if case.there and case.curve.name == "bn254"]
        if not self.wanted("load") or not chosen:
            return
        chosen.sort(key=lambda case: case.input_bytes)
        self.progress(f"load: {len(chosen)} keys")
        for case in chosen:
            self.record_sizes(case)
        for system in [r.OURS, *(["groth16py"] if self.peers.has("groth16py") else [])]:
            with self.peers.worker(system) as worker:
                measures = {
                    case.name: (lambda case=case: worker.ask(op="load", key=str(case.key), witness=str(case.witness)))
                    for case in chosen
                }
                for name, answers in interleaved(measures, LOADS if system == r.OURS else 1).items():
                    self.results.add(name, r.LOAD, system, [answer["seconds"] for answer in answers])

    def ready(self, case: Case) -> None:
        """Peak memory of a process that is ready: it imports what `cuzk prove` imports, loads the code, and ends."""
        names = self.peers.cuzk_imports(case)
        self.progress(f"ready: the {len(names)} modules of a proof's process, and the compiled code")
        done = [self.peers.ready_process(case.curve, names) for _ in range(self.runs)]
        self.results.add("", r.READY_PEAK, r.OURS, [run.peak_bytes for run in done])

    def cold(self, case: Case) -> None:
        """A first proof on a curve: the compile cache is empty, as in a fresh clone."""
        name = f"cold/{case.curve.name}"
        if not self.wanted(name) or not case.there:
            return
        self.progress(f"{name}: a first proof, compilation included")
        with tempfile.TemporaryDirectory() as cache:
            done = self.peers.cuzk_process(case, {"CUZK_CACHE_DIR": cache})
        self.results.add(name, r.COLD, r.OURS, [done.wall])
        self.results.facts[name] = {"proved": case.name}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure cuzk's CPU backend beside other provers.")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="measured runs after one warm-up (default: 5)")
    parser.add_argument("--quick", action="store_true", help="one run, neither the largest chain nor a first proof")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="only what has NAME in its name (bn254/semaphore20, msm, load, cold, ...); may be repeated",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: benchmarks/results/cpu-DATE.json")
    options = parser.parse_args()
    if options.quick:
        options.runs = 1
    if options.runs < 1:
        parser.error("--runs: expected at least 1")
    return options


def main() -> int:
    options = parse()
    head = {"date": today(), "machine": machine(), **commit(), "runs": options.runs, "only": options.only}
    with Launcher() as launcher, tempfile.TemporaryDirectory() as folder:
        peers = Peers(launcher, Path(folder))
        packages = {name: importlib.metadata.version(name) for name in ("numpy", "numba", "llvmlite")}
        head["versions"] = {**packages, **peers.versions()}
        describe(head)

        bench = Bench(options, peers)
        small = [*shared_cases(), example_case(), CHAIN]
        cases = small if options.quick else [*small, LARGE]
        for case in cases:
            bench.case(case)
        for msm in MSMS:
            bench.msm(msm)
        bench.loading(cases)
        proved = [case for case in cases if case.name in bench.results.cases(r.PEAK)]
        if proved:
            bench.ready(proved[0])
        if not options.quick:
            for curve in ("bn254", "bls12_381"):
                first = next((case for case in reversed(small) if case.curve.name == curve and case.there), None)
                if first is not None:
                    bench.cold(first)

        path = options.output or HERE / "results" / f"cpu-{head['date']}.json"
        r.write(path, head, bench.results)
        bench.progress(f"wrote {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")
        return 0 if Tables(bench.results, peers).all() else 1


def describe(head: dict[str, Any]) -> None:
    m = head["machine"]
    print(f"{m['cpu']}, {m['cores']} cores, {m['memory_gib']} GiB, {m['os']}, Python {m['python']}")
    print(", ".join(f"{name} {version or 'not installed'}" for name, version in head["versions"].items()))
    state = " with changes" if head["dirty"] else ""
    print(f"commit {head['commit']}{state}, {head['date']}, load before {m['load_average_before']:.1f}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"benchmark stopped: {error}")
