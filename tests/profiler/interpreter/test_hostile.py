"""Hostile snippets: each ends inside its budget with a clear message, never with a crash or a hang."""

from __future__ import annotations

import time

import pytest

from oarlock_profiler.core.interpreter.budget import Limits
from oarlock_profiler.core.interpreter.values import Unknown

from .bench import run

HOSTILE: dict[str, str] = {
    "pow": 'x = 10**10**10\ny = 2**(10**9)\nz = (10**100)**10000',
    "list": "x = [0]*10**12\ny='a'*10**12\nz=(1,)*10**9\nb=b'x'*10**10\nq=bytes(10**12)",
    "shift": 'x = 1 << 10**10\ny = 1 >> 10**10',
    "range": 'x = list(range(10**12))\nfor i in range(10**12): pass',
    "loop": 'while True: pass',
    "doubling": "s='a'\nfor i in range(100): s += s\nl=[1]\nfor i in range(100): l += l\nl2=[1]\nfor i in range(60): l2 = l2 + l2\nl3=[1]\nfor i in range(60): l3.extend(l3)",
    "rec": 'def f(n): return f(n+1)\nf(0)',
    "rec2": 'def f(n): return f(n-1)+f(n-2) if n > 1 else n\nf(1000)',
    "selfc": "a=[]\na.append(a)\nb=[]\nb.append(b)\nprint(a==b, str(a))\nd={}\nd['d']=d\nx=str(d)\nimport json\njson.dumps(d)\nimport copy\nc=copy.deepcopy(a)\nf'{a}'",
    "fmt": "x='{:>1000000000}'.format(1)\ny='%1000000000d' % 1\nz=f'{1:>{10**9}}'\nw='x'.ljust(10**10)\nv='%*d' % (10**9, 1)\nu='{:{}}'.format(1, 10**9)",
    "nest": "x=" + "(" * 150 + "1" + ")" * 150,
    "nest2": "x=" + "[" * 5000 + "]" * 5000,
    "nest3": "x=" + "-" * 20000 + "1",
    "nest4": "x=" + "+".join(["1"] * 20000),
    "nest5": "\n".join("    " * i + "if 1:" for i in range(90)) + "\n" + "    " * 90 + "x=1",
    "attr": "x = a" + ".b" * 5000,
    "null": 'x=1\x00',
    "cyc": 'import main',
    "py2": "print 'hello'",
    "syn": 'def f(:\n  pass',
    "re": "import re\nre.match(r'(a+)+$', 'a'*40+'b')\nre.sub(r'(x|xx)*y', '', 'x'*50)\nre.search('(.*)*(.*)*z', 'a'*100)",
    "fact": 'import math\nmath.factorial(10**8)\nmath.comb(10**6, 5*10**5)\nmath.perm(10**6,10**5)',
    "prod": 'import itertools\nx=list(itertools.product(range(1000), repeat=10))\ny = list(itertools.permutations(range(50)))',
    "comp": 'x=[i for i in range(10**9)]',
    "dictgrow": 'd={}\nwhile True: d[len(d)] = 1',
    "mutate": 'l=[1]\nfor x in l: l.append(x)\nd={1:1}\nfor k in d: d[k+1]=1\ns={1}\nfor k in s: s.add(k+1)',
    "exc": 'class E(Exception):\n def __str__(self): return str(self)\nraise E()',
    "getattr": "class A:\n def __getattr__(self, n): return getattr(self, n+'x')\nA().foo",
    "eq": 'class A:\n def __eq__(self, o): return self == o\nA() == A()',
    "repr": 'class A:\n def __repr__(self): return repr(self)\nrepr(A())',
    "meta": 'class M(type):\n def __call__(cls,*a): return cls()\nclass A(metaclass=M): pass\nA()',
    "gen": 'def g():\n yield from g()\nlist(g())',
    "gen2": 'def g():\n while True: yield 1\nlist(g())\nsum(g())\nmax(g())\n',
    "deco": 'def d(f): return d\n@d\ndef x(): pass',
    "exit": 'import sys\nsys.exit(3)',
    "exit2": 'import os\nos._exit(3)',
    "exec": 'exec(\'x = 1\')\neval(\'__import__("os").system("touch /tmp/pwned")\')\nopen(\'/etc/passwd\').read()\n__import__(\'os\').system(\'id\')\nimport subprocess; subprocess.run([\'ls\'])\nimport ctypes\nctypes.CDLL(\'libc.so.6\')',
    "subclass": "().__class__.__bases__[0].__subclasses__()\nprint.__self__\n(lambda: 0).__globals__\n(lambda:0).__code__.co_consts\n''.format.__self__\n'{0.__class__.__mro__}'.format(1)",
    "intstr": "x = int('9'*5000)\ny=str(10**4999)\nz = 10**4400\nprint(f'{z}')\nz2='%d' % z",
    "slice": 'x=[1,2,3]\nx[::10**20]\nx[10**30:]\nx[::0]',
    "del": 'class A:\n def __del__(self): raise ValueError\nx=A()\ndel x',
    "bigset": 's=set(range(10**9))',
    "yield": 'x = yield 1\nreturn 5',
    "star": 'a, *b = range(10**9)\nf(*range(10**9))',
    "print": 'print(*range(10**9))',
    "hash": 'd={}\nd[[]]=1\n{[]:1}\n{{}}\nhash([])',
    "names": "x=" + "a" * 100000 + "\nimport " + "a." * 1000 + "b",
    "unicode": 'х = 1\nprint(х)\n𝐱 = 2',
    "async": 'import asyncio\nasync def f():\n  await g()\n  async for x in y: pass\n  async with z as q: pass\nasyncio.run(f())',
    "whiletrue_try": 'while True:\n  try:\n    x = 1/0\n  except Exception:\n    continue',
    "lambda": 'f = lambda: f()\nf()',
    "prop": 'class A:\n  @property\n  def x(self): return self.x\nA().x',
    "sort": 'sorted(range(10**7), key=lambda x: -x)',
    "reduce": 'import functools\nfunctools.reduce(lambda a,b: a*b, range(1,10**6))',
    "strmul": "s='ab'\ns=s.replace('a','a'*1000)\nfor i in range(20): s=s.replace('a', s)",
    "join": "s=','.join(['x'*1000]*10**5)",
    "zip": 'list(zip(*[range(10**9)]*3))',
    "enum": "from enum import Enum\nclass E(Enum):\n  A=1\n  B=A\nE(7)\nE['Z']",
    "deque": 'from collections import deque\nd=deque(range(10**9))\n',
    "argp": "import argparse\np=argparse.ArgumentParser()\np.add_argument('--x', nargs=10**9)\np.add_argument('--y', type=eval)\np.add_argument('--z', type=open)\np.add_argument()\np.add_argument('a b')\np.parse_args(['--x','1','--y','1+1','@/etc/passwd','--z','/etc/passwd'])",
    "yaml": 'import yaml\nyaml.load(\'!!python/object/apply:os.system ["touch /tmp/pwned"]\')\nyaml.safe_load(\'[\'*5000)\na=yaml.safe_load(\'a: &a [x,x]\\nb: &b [*a,*a]\\nc: &c [*b,*b]\')',
    "json": "import json\njson.loads('['*100000)",
    "classloop": 'class A: pass\nclass B(A): pass\nA.__bases__=(B,)\nA().x\nclass C(A,B): pass',
    "superloop": 'class A:\n def f(self): return super(A, self).f()\nA().f()',
    "iterself": 'class A:\n def __iter__(self): return self\n def __next__(self): return 1\nlist(A())\nfor x in A(): pass',
    "len": 'class A:\n def __len__(self): return 10**30\n def __getitem__(self,i): return i\nlist(A())\nlen(A())',
    "fromkeys": 'dict.fromkeys(range(10**9))',
    "chr": "chr(10**10)\nord('')\n",
    "matrix": 'x=[[0]*1000 for _ in range(10**6)]',
    "tuplegrow": 't=()\nwhile True: t=(t,t)',
    "closures": 'def f(g): return lambda: g()\nh=lambda: 1\nfor i in range(10000): h=f(h)\nh()',
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_ends_within_its_budget(name: str) -> None:
    started = time.monotonic()
    ran = run(HOSTILE[name], limits=Limits(steps=300_000, seconds=3))
    assert time.monotonic() - started < 20
    assert ran.machine.internal_errors == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pow", "too large"),
        ("list", "1,000,000"),
        ("null", "null bytes"),
        ("syn", "syntax error"),
        ("py2", "Python 2"),
        ("nest2", "nested"),
        ("nest3", "nested too deeply"),
        ("rec", "nested more than"),
        ("range", "steps"),
        ("loop", "still running"),
        ("fmt", "giant format width"),
        ("fact", "too large"),
    ],
)
def test_says_why(name: str, words: str) -> None:
    ran = run(HOSTILE[name], limits=Limits(steps=300_000, seconds=3))
    assert any(words in gap for gap in ran.gaps), ran.gaps


def test_faults_are_placed() -> None:
    ran = run("x = 1\ny = 2 ** (10 ** 9)\n")
    (gap,) = ran.machine.findings.gaps.values()
    assert gap.where is not None
    assert (gap.where.file, gap.where.line) == ("main.py", 2)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\xef\xbb\xbfr = 'bom'", "bom"),
        ("# -*- coding: gbk -*-\nr = '中'".encode("gbk"), "中"),
        ("# coding: latin-1\nr = 'é'".encode("latin-1"), "é"),
        (b"r = 'caf\xe9'", "café"),
        ("r = 'u16'".encode("utf-16"), "u16"),
        (b"# coding: no-such-codec\nr = 1", 1),
        (b"r = 1\r\nr += 1\r\n", 2),
    ],
)
def test_encodings(data: bytes, value: object) -> None:
    assert run(data)["r"] == value


def test_a_reading_that_runs_out_says_where_it_was() -> None:
    ran = run(
        "x = 1\ndef f():\n    while True:\n        x = 2\n        y = 3\nf()\n",
        limits=Limits(steps=5_000, seconds=9, loop=10**9),
    )
    (gap,) = [g for g in ran.machine.findings.gaps.values() if g.what == "the rest of the script"]
    assert gap.where is not None
    assert gap.where.line in (3, 4, 5)


def test_an_error_that_a_native_raises_says_where() -> None:
    ran = run(
        "try:\n    x = {}['a']\nfinally:\n    y = 1\nclass E(Exception): pass\ntry:\n    raise E\nexcept E:\n    pass\nz = 1\nraise E('late')\n"
    )
    (gap,) = [g for g in ran.machine.findings.gaps.values() if g.what == "the rest of the script"]
    assert gap.where is not None
    assert gap.where.line == 11


@pytest.mark.parametrize("encoding", ["punycode", "idna", "rot13", "zlib", "no-such-codec"])
def test_no_codec_of_a_script_s_choosing_is_imported(encoding: str) -> None:
    source = f"# coding: {encoding}\nr = 'abc-'.encode({encoding!r}, 'replace')\ns = b'abc-'.decode({encoding!r})\n"
    ran = run(source)
    assert isinstance(ran["r"], Unknown)
    assert isinstance(ran["s"], Unknown)
    assert any(encoding in gap for gap in ran.gaps)


def test_a_range_longer_than_the_host_can_count() -> None:
    ran = run(
        "n = 0\nfor i in range(10**30):\n    n += 1\n    if n > 5: break\nx = list(range(-(10**30), 10**30))\nfor a, b in zip(range(10**30), [1, 2]): pass\n"
    )
    assert ran.machine.internal_errors == []
    assert (ran["n"], ran["b"]) == (6, 2)
    assert isinstance(ran["x"], Unknown)
