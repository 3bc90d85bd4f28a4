"""Divergences to 50 digits, from their definitions."""

import mpmath as mp

mp.mp.dps = 50


def exact_kl(p: float, q: float) -> "mp.mpf":
    p, q = mp.mpf(p), mp.mpf(q)
    return sum(x * mp.log(x / y) for x, y in ((p, q), (1 - p, 1 - q)) if x > 0)


def exact_d_epsilon(p: float, q: float, epsilon: float) -> "mp.mpf":
    p, q, epsilon = mp.mpf(p), mp.mpf(q), mp.mpf(epsilon)
    if q < p:
        p, q = 1 - p, 1 - q
    if q <= p * mp.exp(epsilon) / (1 + p * mp.expm1(epsilon)):
        return exact_kl(p, q)
    return -mp.log(1 - q * (1 - mp.exp(-epsilon))) - epsilon * p
