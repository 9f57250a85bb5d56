"""Arithmetic, comparisons, chaining, boolean values."""

import cmath
import math
import statistics

r = [
    7 // 2, -7 // 2, 7 % -3, -7 % 3, 2**-1, 2**10, 10**20, 7 / 2, 1e308 * 10, 5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 10, -8 >> 1,
    1 < 2 < 3, 1 < 3 > 2, 1 == 1.0 == True, not 1 == 2, 1 if [] else 2, [] or "default", 0 and 1, None or 0, "a" and "b",
    1 is not None, "a" not in "bc", 3 > 2 == True, (1, 2) == (1, 2), [1] is [1], True + True, -True, 0.1 + 0.2, 1e-3, 5 .real,
    math.floor(-1.5), math.ceil(1.2), math.sqrt(16), math.log2(8), math.prod([2, 3]), math.gcd(12, 18), math.inf > 1, math.isclose(0.1 + 0.2, 0.3),
    math.comb(5, 2), math.factorial(5), math.hypot(3, 4), math.pi, math.trunc(2.7), math.log(8, 2), math.isnan(float("nan")), math.copysign(1, -0.0),
    math.lcm(4, 6), math.isqrt(17), math.exp(0), math.cos(0), math.degrees(math.pi), math.fmod(7, 3), math.modf(2.5), math.frexp(8),
    int(3.9), int(-3.9), round(2.5), round(3.5), round(1234.567, -2), float("1.5"), bool(""), bool("0"), complex(1, 2) * 2, abs(3 + 4j),
    (5).bit_length(), (2.5).is_integer(), (0.5).as_integer_ratio(), float.fromhex("0x1p-1"), (10).bit_count(), hex(255), oct(8), bin(5), int("1_000"),
    divmod(-7, 2), pow(2, -1), pow(3, 4, 5), sum([0.1] * 10), max(1, 2.5), min("a", "b"), sum(range(101)), 3 * "ab", [0] * 3, "%.3f" % (2 / 3),
    statistics.mean([1, 2, 3]), statistics.median([1, 2, 3, 4]), 1_000 == 1000, 1.5 // 0.5, 2**0.5, (-8) ** (1 / 3) != 2, 1 != 1.0, hash(1) == hash(1.0),
    str(1e16), str(1e15), repr(0.1), str(1.0), str(100000000000000000.0), 1e22, 123456789.123456789, -0.0, 5e-324, float("nan") != float("nan"),
]  # fmt: skip
x = 5
x += 1; x -= 2; x *= 3; x //= 2; x **= 2; x %= 7; x <<= 3; x |= 1; x ^= 2; x &= 0xFF; x >>= 1  # fmt: skip
r.append(x)
y = 7.0
y /= 2
r.append(y)


class Vec:
    def __init__(self, *v):
        self.v = v

    def __add__(self, o):
        return Vec(*(a + b for a, b in zip(self.v, o.v))) if isinstance(o, Vec) else NotImplemented

    def __radd__(self, o):
        return self if o == 0 else NotImplemented

    def __mul__(self, k):
        return Vec(*(a * k for a in self.v))

    __rmul__ = __mul__

    def __eq__(self, o):
        return isinstance(o, Vec) and self.v == o.v

    def __hash__(self):
        return hash(self.v)

    def __truediv__(self, k):
        return self * (1 / k)

    def __neg__(self):
        return self * -1

    def __pos__(self):
        return self

    def __abs__(self):
        return math.sqrt(sum(a * a for a in self.v))

    def __pow__(self, n):
        return Vec(*(a**n for a in self.v))

    def __iadd__(self, o):
        self.v = tuple(a + 100 for a in self.v)
        return self

    def __getitem__(self, i):
        return self.v[i]

    def __float__(self):
        return float(self.v[0])

    def __int__(self):
        return int(self.v[0])

    def __complex__(self):
        return complex(*self.v)

    def __bool__(self):
        return any(self.v)

    def __ne__(self, o):
        return "ne"


v = Vec(1, 2)
r.append([sum([v, v]).v, (2 * v).v, (v / 2).v, (-v).v, abs(Vec(3, 4)), (v**2).v, v == Vec(1, 2), v != v, float(v), int(v), bool(Vec(0)), [*v]])
v += v
r.append(v.v)
try:
    v + 1
except TypeError as e:
    r.append("TypeError")
try:
    v < v
except TypeError as e:
    r.append("TypeError")
