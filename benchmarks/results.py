"""What was measured, looked up by case, what and system; and the targets, judged from it."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cases import CHAIN, LARGE

# What is measured. Times in seconds, memory in bytes.
PROCESS = "process"  # wall time from start to exit, key and witness as files
PROCESS_CPU = "process cpu"
PEAK = "peak"  # resident memory of that process at its largest
PROVE = "prove"  # in a process that stays, the key loaded, no verification
PROVE_CPU = "prove cpu"
VERIFIED = "prove, verified"  # the same with the proof verified before it is returned
MSM = "msm"
MSM_CPU = "msm cpu"
LOAD = "load"
READY_PEAK = "ready peak"  # of a process that imports what a proof imports, loads the compiled code, and ends
COLD = "cold process"  # nothing compiled yet

OURS = "cuzk"


@dataclass
class Results:
    """Samples under (case, what, system), in the order they were added."""

    samples: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)  # of a case: sizes, who checked the proof

    def add(self, case: str, what: str, system: str, values: Sequence[float]) -> None:
        self.samples.setdefault((case, what, system), []).extend(values)

    def median(self, case: str, what: str, system: str) -> float | None:
        values = self.samples.get((case, what, system))
        return statistics.median(values) if values else None

    def range(self, case: str, what: str, system: str) -> tuple[float, float]:
        values = self.samples[case, what, system]
        return min(values), max(values)

    def cases(self, what: str) -> list[str]:
        return list(dict.fromkeys(case for case, w, _ in self.samples if w == what))

    def over_ready(self, case: str) -> float | None:
        """Bytes that a proof's process takes beyond one that is ready to prove and ends."""
        peak, base = self.median(case, PEAK, OURS), self.median("", READY_PEAK, OURS)
        return None if peak is None or base is None else peak - base

    def as_json(self) -> list[dict[str, Any]]:
        return [
            {
                "case": case,
                "what": what,
                "system": system,
                "median": statistics.median(values),
                "min": min(values),
                "max": max(values),
                "values": list(values),
            }
            for (case, what, system), values in self.samples.items()
        ]


@dataclass(frozen=True)
class Target:
    """ours / theirs <= limit; one of them None: not measured, in this run or for want of the peer."""

    name: str
    ours: float | None
    theirs: float | None
    limit: float

    @property
    def ratio(self) -> float | None:
        return None if self.ours is None or self.theirs is None else self.ours / self.theirs

    @property
    def verdict(self) -> str:
        if self.ratio is None:
            return "not measured"
        return "pass" if self.ratio <= self.limit else "FAIL"

    def as_json(self) -> dict[str, Any]:
        return {
            "target": self.name,
            "ours": self.ours,
            "theirs": self.theirs,
            "ratio": self.ratio,
            "limit": self.limit,
            "verdict": self.verdict,
        }


COLD_SECONDS = 90.0
MEMORY_FACTOR = 1.5
LOAD_FACTOR = 2.0  # for a key hundreds of times as large; the clock's noise on 0.2 ms needs some room


def targets(results: Results) -> list[Target]:
    median = results.median

    def against(limit: float, case: str, what: str, peer: str) -> Target:
        name = f"{case}: {what}, against {peer}"
        return Target(name, median(case, what, OURS), median(case, what, peer), limit)

    semaphore, chain = "bn254/semaphore20", CHAIN.name
    found = [
        against(0.6, semaphore, PROCESS, "snarkjs"),
        against(0.6, semaphore, PROVE, "groth16py"),
        against(0.5, chain, PROVE, "groth16py"),
        against(0.2, chain, PROCESS, "snarkjs"),
        against(0.2, chain, PROVE, "snarkjs"),
        against(0.5, "msm/bls12_381.g1/2^16", MSM, "py_arkworks"),
    ]
    found += [against(1.0, case, PROCESS, "snarkjs") for case in results.cases(PROCESS)]
    loaded = results.cases(LOAD)
    if len(loaded) > 1:
        small, large = loaded[0], loaded[-1]
        factor = results.facts[large]["key_bytes"] / results.facts[small]["key_bytes"]
        name = f"loading a key {factor:.0f} times as large takes no longer"
        found.append(Target(name, median(large, LOAD, OURS), median(small, LOAD, OURS), LOAD_FACTOR))
    for case in (chain, LARGE.name):
        size = results.facts.get(case, {}).get("input_bytes")
        found.append(Target(f"{case}: memory over key + witness", results.over_ready(case), size, MEMORY_FACTOR))
    for case in results.cases(COLD):
        name = f"{case}: first proof, within {COLD_SECONDS:.0f} s"
        found.append(Target(name, median(case, COLD, OURS), COLD_SECONDS, 1.0))
    return found


def write(path: Path, head: dict[str, Any], results: Results) -> None:
    path.parent.mkdir(exist_ok=True)
    content = {
        **head,
        "cases": results.facts,
        "measures": results.as_json(),
        "targets": [target.as_json() for target in targets(results)],
    }
    temporary = path.with_suffix(f".{os.getpid()}.new")
    temporary.write_text(json.dumps(content, indent=1) + "\n")
    temporary.replace(path)
