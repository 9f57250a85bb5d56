"""Snippets of Python and what they leave behind: every construct that training scripts use."""

from __future__ import annotations

from typing import Any

import pytest

from .bench import run

CASES: dict[str, tuple[str, Any]] = {
    "closures share cells": (
        "def counter():\n n = 0\n def inc():\n  nonlocal n\n  n += 1\n  return n\n return inc\nc = counter(); c()\nr = c(), counter()()",
        (2, 1),
    ),
    "late binding in a loop": ("fs = [lambda: i for i in range(3)]\nr = [f() for f in fs]", [2, 2, 2]),
    "nested comprehensions capture": ("r = [[(lambda: (i, j))() for j in range(2)] for i in range(2)]", [[(0, 0), (0, 1)], [(1, 0), (1, 1)]]),
    "global and del": ("n = 1\ndef f():\n global n\n n = 5\n global gone\n gone = 1\nf()\ndel gone\nr = n, 'gone' in globals()", (5, False)),
    "defaults are evaluated once": ("def f(x, acc=[]):\n acc.append(x)\n return acc\nf(1)\nr = f(2)", [1, 2]),
    "keyword-only and positional-only": ("def f(a, /, b, *, c=3, **k): return a, b, c, k\nr = f(1, 2), f(1, b=4, c=5, a=6)", ((1, 2, 3, {}), (1, 4, 5, {"a": 6}))),
    "star arguments": ("def f(*a, **k): return a, k\nr = f(*[1, 2], 3, **{'x': 4}, y=5)", ((1, 2, 3), {"x": 4, "y": 5})),
    "decorators in order": ("def d(n):\n def w(f): return lambda x: f(x) * 10 + n\n return w\n@d(1)\n@d(2)\ndef f(x): return x\nr = f(3)", 321),
    "class decorators and registries": ("REG = {}\ndef register(c):\n REG[c.__name__] = c\n return c\n@register\nclass A:\n def __init__(self, x): self.x = x\nr = REG['A'](4).x", 4),
    "properties": ("class A:\n def __init__(self): self._x = 1\n @property\n def x(self): return self._x\n @x.setter\n def x(self, v): self._x = v * 2\na = A(); a.x = 5\nr = a.x", 10),
    "cached property": ("import functools\nclass A:\n n = 0\n @functools.cached_property\n def x(self):\n  A.n += 1\n  return A.n\na = A(); a.x\nr = a.x, A.n", (1, 1)),
    "static and class methods": ("class A:\n k = 2\n @staticmethod\n def s(x): return x + 1\n @classmethod\n def c(cls): return cls.k\nclass B(A): k = 7\nr = A.s(1), B.s(1), B.c(), B().c()", (2, 2, 7, 7)),
    "diamond inheritance": (
        "class A:\n def f(self): return ['A']\nclass B(A):\n def f(self): return ['B'] + super().f()\nclass C(A):\n def f(self): return ['C'] + super().f()\n"
        "class D(B, C):\n def f(self): return ['D'] + super(D, self).f()\nr = D().f(), [c.__name__ for c in D.__mro__]",
        (["D", "B", "C", "A"], ["D", "B", "C", "A", "object"]),
    ),
    "super in a class method": ("class A:\n @classmethod\n def make(cls, x): return (cls.__name__, x)\nclass B(A):\n @classmethod\n def make(cls, x): return super().make(x + 1)\nr = B.make(1)", ("B", 2)),
    "init_subclass": ("class A:\n reg = []\n def __init_subclass__(cls, tag=None, **k):\n  super().__init_subclass__(**k)\n  A.reg.append((cls.__name__, tag))\nclass B(A, tag='x'): pass\nr = A.reg", [("B", "x")]),
    "metaclass singleton": ("class M(type):\n i = {}\n def __call__(cls, *a):\n  if cls not in cls.i: cls.i[cls] = super().__call__(*a)\n  return cls.i[cls]\nclass A(metaclass=M):\n def __init__(self, v): self.v = v\nr = A(1) is A(2), A(3).v", (True, 1)),
    "metaclass registry": ("class M(type):\n reg = []\n def __new__(mcs, name, bases, ns):\n  c = super().__new__(mcs, name, bases, ns)\n  mcs.reg.append(name)\n  return c\nclass A(metaclass=M):\n x = 1\nr = M.reg, A().x", (["A"], 1)),
    "new": ("class A:\n def __new__(cls, *a):\n  o = super().__new__(cls)\n  o.tag = a\n  return o\n def __init__(self, x): self.x = x\na = A(3)\nr = a.tag, a.x", ((3,), 3)),
    "getattr hooks": ("class A:\n def __getattr__(self, n):\n  if n.startswith('x'): return n.upper()\n  raise AttributeError(n)\nr = A().xy, hasattr(A(), 'z'), getattr(A(), 'q', 5)", ("XY", False, 5)),
    "setattr hook": ("class A:\n def __setattr__(self, n, v): super().__setattr__(n, v * 2)\na = A(); a.x = 4\nr = a.x, vars(a)", (8, {"x": 8})),
    "descriptor": ("class D:\n def __set_name__(self, o, n): self.n = n\n def __get__(self, o, t): return (self.n, o is None)\nclass A: d = D()\nr = A().d, A.d", (("d", False), ("d", True))),
    "private names": ("class A:\n def __init__(self): self.__x = 1\n def get(self): return self.__x\nclass B(A):\n def __init__(self):\n  super().__init__()\n  self.__x = 2\nr = B().get(), sorted(vars(B()))", (1, ["_A__x", "_B__x"])),
    "operators": ("class V:\n def __init__(self, x): self.x = x\n def __add__(self, o): return V(self.x + (o.x if isinstance(o, V) else o))\n __radd__ = __add__\n def __mul__(self, o): return NotImplemented\n"
                  " def __rmul__(self, o): return V(self.x * o)\n def __eq__(self, o): return self.x == o.x\n def __lt__(self, o): return self.x < o.x\n def __neg__(self): return V(-self.x)\n def __bool__(self): return self.x > 0\n"
                  "r = (V(1) + V(2)).x, (5 + V(1)).x, (3 * V(2)).x, V(1) == V(1), V(1) != V(2), V(1) < V(2), V(3) > V(2), (-V(4)).x, not V(-1), sum([V(1), V(2)]).x", (3, 6, 6, True, True, True, True, -4, True, 3)),
    "in-place operator": ("class A:\n def __init__(self): self.l = []\n def __iadd__(self, o):\n  self.l.append(o)\n  return self\na = A(); b = a; a += 1\nr = b.l", [1]),
    "container protocol": ("class A:\n def __len__(self): return 3\n def __getitem__(self, i):\n  if i >= 3: raise IndexError\n  return i * i\n def __contains__(self, x): return x == 9\nr = len(A()), list(A()), 9 in A(), A()[2]", (3, [0, 1, 4], True, 4)),
    "iterator protocol": ("class A:\n def __init__(self): self.n = 0\n def __iter__(self): return self\n def __next__(self):\n  self.n += 1\n  if self.n > 3: raise StopIteration\n  return self.n\nr = [x for x in A()]", [1, 2, 3]),
    "callable instance": ("class A:\n def __call__(self, x, *, k=1): return x + k\nr = A()(1, k=2), callable(A())", (3, True)),
    "dict subclass": ("class Cfg(dict):\n def __getattr__(self, k): return self[k]\n def __setattr__(self, k, v): self[k] = v\nc = Cfg(a=1); c.b = 2\nr = c.a + c['b'], len(c), dict(**c), isinstance(c, dict), 'a' in c", (3, 2, {"a": 1, "b": 2}, True, True)),
    "list subclass": ("class L(list):\n def last(self): return self[-1]\nl = L([1, 2]); l.append(3)\nr = l.last(), len(l), [x for x in l]", (3, 3, [1, 2, 3])),
    "missing hook": ("class D(dict):\n def __missing__(self, k):\n  self[k] = k * 2\n  return self[k]\nd = D()\nr = d[4], d", (8, {4: 8})),
    "int and str subclasses": ("class I(int): pass\nclass S(str):\n def shout(self): return self.upper()\nr = I(3) + 1, S('ab').shout(), S('a') == 'a'", (4, "AB", True)),
    "try, else, finally": ("log = []\ndef f(x):\n try:\n  if x: raise ValueError('v')\n except ValueError as e:\n  log.append(str(e))\n  return 'caught'\n else:\n  log.append('else')\n finally:\n  log.append('finally')\n return 'end'\nr = f(0), f(1), log", ("end", "caught", ["else", "finally", "v", "finally"])),
    "exception classes": ("class E(RuntimeError):\n def __init__(self, code):\n  super().__init__(f'code {code}')\n  self.code = code\ntry:\n raise E(4)\nexcept (KeyError, RuntimeError) as e:\n r = e.code, e.args, str(e), isinstance(e, Exception)", (4, ("code 4",), "code 4", True)),
    "re-raise": ("def f():\n try:\n  {}['a']\n except KeyError:\n  raise ValueError('x') from None\ntry:\n f()\nexcept ValueError as e:\n r = str(e)", "x"),
    "bare raise": ("try:\n try:\n  raise TypeError('t')\n except TypeError:\n  raise\nexcept Exception as e:\n r = type(e).__name__", "TypeError"),
    "implicit errors are caught": ("out = []\nfor f in (lambda: {}['x'], lambda: [][1], lambda: 1 / 0, lambda: int('x'), lambda: None.a, lambda: 'a' + 1, lambda: next(iter([]))):\n try: f()\n except (KeyError, IndexError, ZeroDivisionError, ValueError, AttributeError, TypeError, StopIteration) as e: out.append(type(e).__name__)\nr = out",
                                   ["KeyError", "IndexError", "ZeroDivisionError", "ValueError", "AttributeError", "TypeError", "StopIteration"]),
    "missing module takes the except side": ("try:\n import not_there_at_all\n ok = True\nexcept ImportError:\n ok = False\nr = ok", False),
    "with and exit order": ("log = []\nclass C:\n def __init__(self, n): self.n = n\n def __enter__(self):\n  log.append('+' + self.n)\n  return self.n\n def __exit__(self, t, v, tb):\n  log.append('-' + self.n)\n  return t is ValueError\nwith C('a') as a, C('b'):\n raise ValueError\nr = a, log", ("a", ["+a", "+b", "-b", "-a"])),
    "contextmanager": ("from contextlib import contextmanager\nlog = []\n@contextmanager\ndef c(x):\n log.append(x)\n try: yield x + 1\n finally: log.append('out')\nwith c(1) as y: log.append(y)\nr = log", [1, 2, "out"]),
    "generators": ("def g(n):\n for i in range(n):\n  x = yield i\n  if x: yield x * 10\n return 'end'\na = g(3)\nr = next(a), a.send(5), next(a), list(a)", (0, 50, 1, [2])),
    "yield from": ("def a():\n yield 1\n yield 2\ndef b():\n yield 0\n yield from a()\n yield from [3]\nr = list(b())", [0, 1, 2, 3]),
    "generator is lazy": ("log = []\ndef g():\n for i in range(100):\n  log.append(i)\n  yield i\nit = g(); next(it); next(it)\nr = log", [0, 1]),
    "yield inside an expression": ("def g():\n x = [1 + (yield 'a'), 2]\n yield x\nit = g(); next(it)\nr = it.send(4)", [5, 2]),
    "generator with try": ("log = []\ndef g():\n try:\n  yield 1\n  yield 2\n finally:\n  log.append('f')\nr = [x for x in g()], log", ([1, 2], ["f"])),
    "generator expressions": ("r = sum(x * x for x in range(4) if x % 2), any(x > 2 for x in range(5)), list(x for x in 'ab')", (10, True, ["a", "b"])),
    "match": ("def f(v):\n match v:\n  case 0 | 1: return 'small'\n  case int(n) if n > 10: return f'big {n}'\n  case [a, *rest]: return (a, rest)\n  case {'k': k, **o}: return (k, o)\n  case str(): return 'text'\n  case None: return 'none'\n  case _: return 'other'\n"
              "r = f(1), f(12), f([1, 2, 3]), f({'k': 4, 'z': 5}), f('s'), f(None), f(5)", ("small", "big 12", (1, [2, 3]), (4, {"z": 5}), "text", "none", "other")),
    "match a class": ("from dataclasses import dataclass\n@dataclass\nclass P:\n x: int\n y: int\nmatch P(1, 2):\n case P(x=0): r = 'zero'\n case P(a, y=b): r = a + b", 3),
    "unpacking": ("a, (b, *c), d = 1, (2, 3, 4), 5\n[e, f] = 'xy'\nr = a, b, c, d, e, f", (1, 2, [3, 4], 5, "x", "y")),
    "slices": ("l = list(range(10))\nl[2:4] = ['a']\ndel l[-1]\nr = l[::3], l[-2:], 'abcdef'[1:4]", ([0, 4, 7], [7, 8], "bcd")),
    "walrus": ("r = [y := 5, y ** 2], [last := x for x in range(3)], last", ([5, 25], [0, 1, 2], 2)),
    "f-strings": ("x = 3.14159; n = 'ab'; w = 8\nr = f'{x:.2f}|{n!r}|{n:>{w}}|{x=:.1f}|{{}}|{1_000_000:,}'", "3.14|'ab'|      ab|x=3.1|{}|1,000,000"),
    "format and percent": ("r = '{} {1!r} {name:>4}'.format(1, 2, name='x') if False else '{0} {1!r} {name:>4}'.format(1, 'b', name='x'), '%s %5.2f %(a)s' % () if False else '%s-%05.2f' % ('a', 2.5)", ("1 'b'    x", "a-02.50")),
    "conditional chains": ("x = 5\nr = 1 < x < 10, x if x > 3 else 0, x and 'y', 0 or [] or 'z', not x", (True, 5, "y", "z", False)),
    "while, else, break, continue": ("out = []\ni = 0\nwhile i < 5:\n i += 1\n if i == 2: continue\n if i == 4: break\n out.append(i)\nelse:\n out.append('else')\nfor j in range(2): pass\nelse: out.append('for-else')\nr = out", [1, 3, "for-else"]),
    "dataclasses": ("from dataclasses import dataclass, field, asdict, replace, fields\n@dataclass\nclass A:\n x: int\n y: list = field(default_factory=list)\n z: str = 'a'\n def __post_init__(self): self.t = self.x * 2\n@dataclass\nclass B(A):\n w: int = 0\n"
                    "b = B(1, w=5)\nr = b.t, asdict(b), replace(b, x=9).x, [f.name for f in fields(B)], B(1) == B(1), repr(A(2))", (2, {"x": 1, "y": [], "z": "a", "w": 5}, 9, ["x", "y", "z", "w"], True, "A(x=2, y=[], z='a')")),
    "enums": ("from enum import Enum, IntEnum, auto\nclass C(Enum):\n R = 'r'\n G = auto() if False else 'g'\n @property\n def up(self): return self.value.upper()\nclass N(IntEnum):\n A = 1\n B = 2\nclass S(str, Enum):\n X = 'x'\n"
              "r = C('r') is C.R, C['G'].value, [c.name for c in C], C.R.up, N.B > N.A, N(2) + 1, S.X == 'x', {'x': 4}[S.X], isinstance(C.R, C), len(N), C.R in C", (True, "g", ["R", "G"], "R", True, 3, True, 4, True, 2, True)),
    "named tuples": ("from collections import namedtuple\nfrom typing import NamedTuple\nP = namedtuple('P', 'x y', defaults=[0])\nclass Q(NamedTuple):\n a: int\n b: int = 2\n def s(self): return self.a + self.b\np = P(1)\nx, y = p\nr = x, y, p._replace(y=4), Q(3).s(), Q(1, 5)[1], P._fields", (1, 0, (1, 4), 5, 5, ("x", "y"))),
    "functools": ("import functools, operator\n@functools.lru_cache(maxsize=None)\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\ndef deco(f):\n @functools.wraps(f)\n def w(*a): return f(*a)\n return w\n@deco\ndef named(): 'doc'\n"
                  "r = fib(50), functools.partial(int, base=2)('101'), functools.reduce(operator.mul, [1, 2, 3, 4]), named.__name__, named.__doc__", (12586269025, 5, 24, "named", "doc")),
    "single dispatch": ("import functools\n@functools.singledispatch\ndef f(x): return 'any'\n@f.register(int)\ndef _(x): return 'int'\n@f.register\ndef _(x: str): return 'str'\nr = f(1), f('a'), f(2.0)", ("int", "str", "any")),
    "itertools": ("import itertools as it\nr = list(it.chain([1], (2, 3))), list(it.islice(it.count(5), 3)), list(it.product('ab', [1, 2])), [list(g) for _, g in it.groupby([1, 1, 2])], list(it.accumulate([1, 2, 3])), list(it.zip_longest([1], [2, 3]))",
                  ([1, 2, 3], [5, 6, 7], [("a", 1), ("a", 2), ("b", 1), ("b", 2)], [[1, 1], [2]], [1, 3, 6], [(1, 2), (None, 3)])),
    "collections": ("from collections import OrderedDict, defaultdict, Counter, deque\nd = defaultdict(lambda: [0]); d['a'].append(1)\no = OrderedDict([('x', 1), ('y', 2)]); o.move_to_end('x')\nq = deque([1, 2], maxlen=2); q.append(3)\nr = dict(d), list(o), Counter('aab').most_common(1), list(q)", ({"a": [0, 1]}, ["y", "x"], [("a", 2)], [2, 3])),
    "copies": ("import copy\nclass A:\n def __init__(self): self.l = [1]\na = A(); b = copy.deepcopy(a); c = copy.copy(a); b.l.append(2); c.l.append(3)\nr = a.l, b.l, copy.deepcopy([[1], (2,)])", ([1, 3], [1, 2], [[1], (2,)])),
    "getattr by name": ("import math\nclass A:\n def conv1(self): return 1\n def conv2(self): return 2\na = A()\nsetattr(a, 'x3', 3)\nr = [getattr(a, f'conv{i}')() for i in (1, 2)], getattr(math, 'sqrt')(16), a.x3", ([1, 2], 4.0, 3)),
    "type and isinstance": ("class A: pass\nclass B(A): pass\nT = type('T', (A,), {'x': 5, 'f': lambda self: self.x})\nr = type(B()).__name__, isinstance(B(), (int, A)), issubclass(B, A), type(3) is int, T().f(), isinstance(True, int), isinstance(int, type)", ("B", True, True, True, 5, True, True)),
    "sorting": ("d = {'b': 2, 'a': 1}\nr = sorted(d), sorted(d.items(), key=lambda kv: kv[1], reverse=True), max(d, key=d.get), min([3, 1], default=0), max([], default=7)", (["a", "b"], [("b", 2), ("a", 1)], "b", 1, 7)),
    "builtins": ("r = list(enumerate('ab', 1)), list(zip([1, 2], 'xy')), list(map(lambda a, b: a + b, [1, 2], [3, 4])), list(filter(None, [0, 1, '', 2])), divmod(7, 2), round(2.567, 1), abs(-3), pow(2, 5), list(reversed([1, 2])), all([]), bin(5), ord('a'), chr(98)",
                 ([(1, "a"), (2, "b")], [(1, "x"), (2, "y")], [4, 6], [1, 2], (3, 1), 2.6, 3, 32, [2, 1], True, "0b101", 97, "b")),
    "strings": ("s = ' Res-Net_50 '\nr = s.strip().lower().replace('-', '').split('_'), 'a,b'.partition(','), ','.join(str(i) for i in range(3)), 'abc'.startswith(('x', 'ab')), 'x'.zfill(3), 'a b'.title(), b'ab'.decode()", (["resnet", "50"], ("a", ",", "b"), "0,1,2", True, "00x", "A B", "ab")),
    "dict methods": ("d = {'a': 1}\nd.setdefault('b', []).append(2)\nd.update([('c', 3)], d=4)\nx = d.pop('a'); y = d.pop('zz', None)\nr = x, y, d, {**d, 'e': 5}['e'], d | {'f': 6} == {**d, 'f': 6}, sorted(d.keys() - {'b'})", (1, None, {"b": [2], "c": 3, "d": 4}, 5, True, ["c", "d"])),
    "sets": ("s = {1, 2, 3}\ns.add(4); s.discard(1)\nr = s & {2, 9}, s - {2}, 3 in s, frozenset([1, 1]) == {1}, s.issubset({2, 3, 4, 5})", ({2}, {3, 4}, True, True, True)),
    "async runs in place": ("import asyncio\nasync def g(x): return x + 1\nasync def f():\n return await g(1)\nr = asyncio.run(f())", 2),
    "type checking is false": ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n import nothing_at_all\nr = TYPE_CHECKING", False),
    "abc": ("from abc import ABC, abstractmethod\nclass A(ABC):\n @abstractmethod\n def f(self): ...\n @property\n @abstractmethod\n def p(self): ...\nclass B(A):\n def f(self): return 1\n p = 2\nr = B().f(), B().p", (1, 2)),
    "generic classes": ("from typing import Generic, TypeVar, Optional, List, Union\nT = TypeVar('T')\nclass A(Generic[T]):\n def __init__(self, x: Optional[T] = None) -> List[T]: self.x = x\nx: Union[int, str] = 3\nr = A[int](4).x, x", (4, 3)),
    "eval and exec are interpreted": ("def f(x): return x + 1\nname = 'f'\nexec('y = 5')\nr = eval(name)(1), eval('[i * 2 for i in range(3)]'), y", (2, [0, 2, 4], 5)),
    "dunder name": ("r = __name__, __file__", ("__main__", "main.py")),
    "dispatch tables": ("ACT = {'relu': lambda x: max(x, 0), 'neg': lambda x: -x}\ndef build(kind, *a, **k): return ACT[kind](*a, **k)\nr = build('relu', -3), build(kind='neg', *[2]) if False else build('neg', 2)", (0, -2)),
    "locals and vars": ("def f(a, b=2):\n c = 3\n return locals()\nclass A: pass\na = A(); a.x = 1\nr = f(1), vars(a)", ({"a": 1, "b": 2, "c": 3}, {"x": 1})),
    "class body scope": ("x = 'global'\nclass A:\n x = 'class'\n y = [x for _ in range(1)]\n z = x\n def f(self): return x\nr = A.y, A.z, A().f()", (["global"], "class", "global")),
    "multiple assignment and swaps": ("a = b = [1]\na.append(2)\nc, d = 1, 2\nc, d = d, c\nr = b, c, d", ([1, 2], 2, 1)),
    "iter with sentinel": ("it = iter([1, 2, 0, 3])\nr = list(iter(lambda: next(it), 0))", [1, 2]),
    "inspect signature": ("import inspect\nclass A:\n def __init__(self, a, b=2, **k): pass\np = inspect.signature(A.__init__).parameters\nr = list(p), p['b'].default, 'a' in inspect.signature(A).parameters", (["self", "a", "b", "k"], 2, True)),
    "frames": ("import sys, inspect\ndef named():\n return sys._getframe().f_code.co_name, inspect.stack()[1].function\ndef asked():\n inner = 5\n return back(), named()\ndef back():\n f = inspect.currentframe().f_back\n return f.f_code.co_name, f.f_locals['inner'], sys._getframe(1).f_globals is globals()\nr = asked()", (("asked", 5, True), ("named", "asked"))),
    "math": ("import math\nr = math.sqrt(16), math.ceil(7 / 2), math.log2(8), math.prod([2, 3]), math.isclose(1.0, 1.0), math.gcd(4, 6)", (4.0, 4, 3.0, 6, True, 2)),
    "regular expressions": ("import re\nm = re.match(r'(\\w+?)(\\d+)', 'resnet50')\nr = m.groups(), re.sub(r'\\d', '#', 'a1b2'), re.findall(r'[a-z]', 'a1b'), re.compile('x+').search('axx').span()", (("resnet", "50"), "a#b#", ["a", "b"], (1, 3))),
    "paths": ("import os\nfrom pathlib import Path\np = Path('data') / 'x.tar.gz'\nr = os.path.join('a', 'b'), os.path.splitext('m.pdparams'), p.suffix, p.name, str(p.parent), os.path.basename('/a/b'), p.with_suffix('.zip').name", ("a/b", ("m", ".pdparams"), ".gz", "x.tar.gz", "data", "b", "x.tar.zip")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_snippet(name: str) -> None:
    source, expected = CASES[name]
    ran = run(source)
    assert ran.machine.internal_errors == []
    assert ran.stopped is None
    assert ran["r"] == expected
