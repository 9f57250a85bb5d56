"""f-strings, format, %-formatting and string methods."""

import string
import textwrap

x, name, value = 42, "layer", 3.14159
r = [
    f"{x=}, {name!r:>10}, {value:.2f}, {x:#x}, {x:08b}, {x:,}, {1234567:_}, {value:e}, {0.25:%}",
    f"{name:^{x}}|{value:{10}.{3}}|{'nested ' + f'{x + 1}'}",
    f"{{literal}} {x!s:*<6} {[i for i in range(3)]} {(lambda y: y * 2)(3)}",
    f"{x:>+6d}|{-x:<6}|{x:^6}|{True}|{None}|{1e10}|{1e-7}|{1/3}",
    f"""{
        x
        + 1
    } multi""",
    "{0} {1} {0}".format("a", "b"),
    "{a.real} {b[0]} {c[key]}".format(a=3, b=[7], c={"key": "v"}),
    "{:>{w}.{p}f}".format(2.5, w=8, p=3),
    "{!r} {!s} {:d}".format("q", "s", 7),
    "%s %d %5.2f %x %r %% %-5s| %05d %+d %e" % ("a", 3, 2.5, 255, "r", "left", 42, 5, 12345.678),
    "%(name)s is %(value).1f" % {"name": "n", "value": 2.55},
    "%s" % (1, ) + "%s" % [1, 2],
    string.Template("$a and ${b}").substitute(a=1, b=2),
    "a,b,,c".split(","), " a  b ".split(), "a-b-c".rsplit("-", 1), "x=1=2".partition("="), "x=1=2".rpartition("="),
    "Hello".swapcase(), "hello world".title(), "ab".center(6, "*"), "7".zfill(3), "abc"[::-1], "ab" * 2,
    "prefix_x".removeprefix("prefix_"), "x.py".removesuffix(".py"), "a\tb".expandtabs(4), "line\nother\r\n".splitlines(),
    "abcabc".find("c"), "abcabc".rfind("c"), "abcabc".count("b"), "abc".index("b"), "aXbX".replace("X", "-", 1),
    "abc".translate(str.maketrans("ab", "xy")), "é".encode(), b"\xc3\xa9".decode(), "ß".casefold(), "abc".isalpha(),
    "12".isdigit(), "a1".isalnum(), "A".isupper(), " ".isspace(), "id_1".isidentifier(), "T".istitle(),
    ",".join(map(str, range(4))), "ab" "cd", "a" in "cat", "b" < "c", min("bca"), sorted("bca"), ord("a"), chr(98),
    repr("it's"), repr('both \' and "'), ascii("é"), str(b"bytes", "ascii"), "\N{BULLET}", r"\raw", "a\
b",
    textwrap.dedent("""
        one
          two
    """),
    format(1234.5, ",.1f"), format("x", ">4"), format(5, "b"), int("ff", 16), int("0x1f", 0), float("1e3"), float("inf") > 1,
    f"{1_000_000}", 0b101, 0o17, 0xFF, 1e3, 1_0.5, 3 + 2j, (3 + 2j).imag,
    "{:.3g} {:g} {:.0f} {:G}".format(0.00012345, 1e20, 2.5, 1e-10),
    "{:<5}|{:^5}|{:>5}".format("a", "b", "c"), "{:=+5d}".format(3), "{:c}".format(65), f"{'a':\u00e9<3}",
    f"{x!r}" f"{name}", f"{name.upper()}{name[0]}{ {'k': 1}['k'] }", f"{x if x > 1 else 0}", f"{'yes' if x else 'no'}",
]
