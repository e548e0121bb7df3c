"""What the CUDA backend is held against: the limits of an H200, and CUDA C++ libraries measured on the same card.

One run each in December 2026, medians, nvcc 13.0, driver 580, points and scalars in device memory.
"""

from __future__ import annotations

CARD = "NVIDIA H200"
WIDE_PER_SECOND = 8.15e12  # 32 x 32 + 64-bit multiply-and-adds (IMAD.WIDE) of the whole card
BYTES_PER_SECOND = 4.3e12  # read and written together

# G/s: one operation after another in registers. sppark's own kernels; a target where it is not sppark's figure says so.
RATES = {
    "products Fp[bls12_381]": {"sppark": 27.3, "target": 27.5},
    "squares Fp[bls12_381]": {"sppark": 34.0, "target": 34.0},
    "sums Fp[bls12_381]": {"sppark": 433.0},
    "products Fr[bls12_381]": {"sppark": 59.5, "target": 60.0},
    "squares Fr[bls12_381]": {"sppark": 72.9, "target": 72.0},
    "sums Fr[bls12_381]": {"sppark": 626.0},
    "mixed additions bls12_381.g1": {"sppark": 2.70, "target": 2.70},
    "full additions bls12_381.g1": {"sppark": 1.87},
    "mixed additions bls12_381.g2": {"sppark": 0.87},
}

# milliseconds by log2 of the size
NTT_REVERSED = {
    "sppark": {16: 0.0205, 18: 0.063, 20: 0.257, 22: 1.04, 24: 4.42, 26: 20.9, 27: 42.3},
    "ICICLE 2.8": {16: 0.062, 18: 0.140, 20: 0.524, 22: 1.89, 24: 7.35},
}
NTT_NATURAL = {"sppark": {16: 0.0253, 18: 0.073, 20: 0.274, 22: 1.12, 24: 4.74, 26: 23.8, 27: 44.3}}
MSM_G1 = {
    "sppark": {16: 6.9, 18: 19.4, 20: 20.3, 22: 52.8, 24: 154.0, 26: 557.0},
    "ICICLE 2.8": {16: 6.6, 18: 8.2, 20: 14.0, 22: 42.5, 24: 137.0},  # with four precomputed multiples of each point
}
MSM_G2 = {"sppark": {16: 9.1, 18: 26.9, 20: 46.3, 22: 137.0, 24: 446.0}}
HALVED = (16, 18)  # sizes at which an MSM in G1 is to take half of sppark's time at most

# all for BLS12-381 (the NTT for its scalar field); nobody's figures for BN254 are at hand
TIMES = {
    "ntt reversed Fr[bls12_381]": NTT_REVERSED,
    "ntt natural Fr[bls12_381]": NTT_NATURAL,
    "msm bls12_381.g1": MSM_G1,
    "msm bls12_381.g2": MSM_G2,
}


def peers_of(name: str, log_n: int | None) -> dict[str, float]:
    """The peers' figures for a measurement, by peer."""
    if log_n is None:
        return {peer: value for peer, value in RATES.get(name, {}).items() if peer != "target"}
    return {peer: times[log_n] for peer, times in TIMES.get(name, {}).items() if log_n in times}


def target_of(name: str, log_n: int | None) -> float | None:
    """G/s at least, or milliseconds at most; None where there is no target."""
    if log_n is None:
        figures = RATES.get(name, {})
        return figures.get("target")
    sppark = TIMES.get(name, {}).get("sppark", {}).get(log_n)
    if sppark is None or name.startswith("ntt natural"):
        return None
    return sppark / 2 if name == "msm bls12_381.g1" and log_n in HALVED else sppark
