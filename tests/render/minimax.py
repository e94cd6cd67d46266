"""Where the polynomial coefficients of `tiny.render` come from: minimax fits by Remez exchange.

    python -m tests.render.minimax            prints every table with the relative error that the fit reached

Needs mpmath, which nothing else does. For 32 bits, coefficients are rounded one after the other, lowest power
first, and the rest are fitted again, so that rounding costs little.
"""
import sys

import mpmath as mp
import numpy as np

mp.mp.dps = 60


def points_of(low, high, count):
    """Chebyshev points: dense at the ends, where polynomials go astray."""
    low, high = mp.mpf(low), mp.mpf(high)
    return [low + (high - low) * (1 - mp.cos(mp.pi * (2 * i + 1) / (2 * count))) / 2 for i in range(count)]


def remez(function, weight, powers, low, high):
    """Minimax coefficients: exchange points until the weighted error alternates between equal heights."""
    count = len(powers) + 1
    points = points_of(low, high, count)
    for _ in range(15):
        rows = mp.matrix([[weight(x) * x**p for p in powers] + [(-1)**i] for i, x in enumerate(points)])
        solution = mp.lu_solve(rows, mp.matrix([weight(x) * function(x) for x in points]))
        terms = dict(zip(powers, solution, strict=False))
        found = extrema(lambda x, terms=terms: weight(x) * (function(x) - value(terms, x)), low, high)
        if len(found) < count:
            break
        while len(found) > count:
            found.pop(0 if abs(found[0][1]) < abs(found[-1][1]) else -1)
        points = [x for x, _ in found]
        if max(abs(e) for _, e in found) < abs(solution[count - 1]) * mp.mpf("1.01"):
            break
    return terms


def value(terms, x):
    return sum(c * x**p for p, c in terms.items())


def extrema(error, low, high):
    """(point, error) where the error is largest between two changes of its sign."""
    best, run = [], []
    for x in points_of(low, high, 500):
        e = error(x)
        if run and (e > 0) != (run[-1][1] > 0):
            best.append(max(run, key=lambda point: abs(point[1])))
            run = []
        run.append((x, e))
    return [*best, max(run, key=lambda point: abs(point[1]))]


def refit(function, weight, powers, fixed, low, high):
    """Least squares for the powers left once the coefficients in `fixed` have been rounded."""
    points = points_of(low, high, 3 * len(powers) + 3)
    rows = mp.matrix([[weight(x) * x**p for p in powers] for x in points])
    right = mp.matrix([weight(x) * (function(x) - value(fixed, x)) for x in points])
    return dict(zip(powers, mp.lu_solve(rows.T * rows, rows.T * right), strict=True))


def fit(function, weight, powers, low, high, rounded):
    """Coefficients as Python floats, each exact in the numpy type `rounded`; and the largest weighted error.
    """
    terms, fixed, powers = remez(function, weight, powers, low, high), {}, list(powers)
    while powers:
        power = powers.pop(0)
        fixed[power] = mp.mpf(float(rounded(float(terms[power]))))
        change = {p: terms[p] for p in powers}
        if powers and rounded is np.float32:
            change = refit(function, weight, powers, fixed, low, high)
        terms = {**fixed, **change}
    largest = max(abs(weight(x) * (function(x) - value(fixed, x))) for x in points_of(low, high, 300))
    return [float(fixed[p]) for p in sorted(fixed)], float(largest)


def _erf_tail(t):
    """-log(erfc(x)) at x = t + 1: erf there is 1 - exp(-this)."""
    return -mp.log(mp.erfc(t + 1))


def _tail_weight(t):
    """How much an error in the exponent shows in the result, but never so little that the fit goes astray."""
    return max(mp.erfc(t + 1) / mp.erf(t + 1), mp.mpf(2)**-12)


def _root(z):
    return mp.sqrt(z)


LN2 = mp.log(2)
HALF_LN2 = (-0.3467, 0.34671)
OCTANT = (1e-9, 0.61702)
# name: (function fitted, weight that makes its error relative to the value wanted, interval, powers for 32,
# 64 bits). Where that weight would be 0 within the interval, its largest value stands for it.
TABLES = {
    "EXP": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: 0.14, HALF_LN2, range(5), range(11)),
    "EXPM1": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: 0.41, HALF_LN2, range(6), range(12)),
    "EXP2": (lambda r: (2**r - 1) / r, lambda r: 0.6, (-0.5002, 0.5001), range(6), range(12)),
    "LOG": (lambda f: (mp.log1p(f) - f) / f**2, lambda f: 0.5, (-0.29290, 0.41422), range(9), None),
    "LOG_SERIES": (lambda z: (mp.log((1 + _root(z)) / (1 - _root(z))) / _root(z) - 2) / z, lambda z: z / 2,
                   (1e-9, 0.029438), None, range(7)),
    "SIN": (lambda z: (mp.sin(_root(z)) / _root(z) - 1) / z, lambda z: z * _root(z) / mp.sin(_root(z)),
            OCTANT,
            range(3), range(6)),
    "COS": (lambda z: (mp.cos(_root(z)) - 1 + z / 2) / z**2, lambda z: z**2 / mp.cos(_root(z)), OCTANT,
            range(3), range(6)),
    "ATAN": (lambda z: (mp.atan(_root(z)) / _root(z) - 1) / z, lambda z: z * _root(z) / mp.atan(_root(z)),
             (1e-9, 0.17158), range(5), range(12)),
    "SERIES": (lambda z: 3 * (mp.atanh(_root(z)) / _root(z) - 1 - z / 3) / z**2, lambda z: z**2 / 3,
               (1e-8, 0.02945), range(3), range(7)),
    "ERF": (lambda z: mp.erf(_root(z)) / _root(z) - 1, lambda z: _root(z) / mp.erf(_root(z)), (1e-9, 1.0),
            range(7), range(13)),
    "ERF_TAIL": (_erf_tail, _tail_weight, (0.0, 3.0), range(8), None),
    "ERF_TAIL64": (_erf_tail, _tail_weight, (0.0, 5.0), None, range(21)),
}


def main(names):
    for name in names or TABLES:
        function, weight, (low, high), *sizes = TABLES[name]
        for powers, rounded in zip(sizes, (np.float32, np.float64), strict=True):
            if powers is not None:
                table, largest = fit(function, weight, powers, low, high, rounded)
                digits = ".9g" if rounded is np.float32 else ".17g"
                print(f"{name} {rounded.__name__}: relative error 2**{np.log2(largest):.1f}")
                print("    (" + ", ".join(format(c, digits) for c in table) + ")", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
