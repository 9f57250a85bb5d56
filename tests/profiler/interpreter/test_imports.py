"""Imports: the bundle first, library source as text, the table, and unknown by name otherwise."""

from __future__ import annotations

from oarlock_profiler.core.interpreter.values import Unknown

from .bench import run

PACKAGE = {
    "pkg/__init__.py": "from .a import A\nfrom . import b\n__all__ = ['A', 'b']\nVERSION = '1'",
    "pkg/a.py": "from .b import B\nfrom ..pkg import b as again\nclass A(B): pass",
    "pkg/b.py": "import pkg.sub.deep as d\nclass B:\n value = d.X",
    "pkg/sub/deep.py": "X = 7",
    "cfg.json": '{"x": [1, 2]}',
}


def test_packages_of_the_bundle() -> None:
    ran = run(
        "import pkg.a as pa\nfrom pkg import *\nimport pkg\nr = A.value, pa.A is A, pkg.b.B.value, pkg.VERSION",
        files=PACKAGE,
    )
    assert ran.gaps == []
    assert ran["r"] == (7, True, 7, "1")


def test_cyclic_imports_end() -> None:
    files = {"a.py": "import b\nX = 1\ndef f(): return b.Y", "b.py": "import a\nfrom a import X as Z\nY = 2"}
    ran = run("import a\nr = a.f(), a.X", files=files)
    assert ran["r"] == (2, 1)


def test_a_script_in_a_folder_sees_its_own_folder_and_what_it_puts_on_the_path() -> None:
    files = {"tools/lib/helper.py": "X = 3"}
    ran = run(
        "import sys, os\nsys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'tools', 'lib'))\nimport helper\nr = helper.X",
        files=files,
    )
    assert ran["r"] == 3


def test_import_by_name() -> None:
    ran = run(
        "import importlib\nr = importlib.import_module('pkg.sub.deep').X, importlib.import_module('.deep', package='pkg.sub').X",
        files=PACKAGE,
    )
    assert ran["r"] == (7, 7)


def test_library_source_is_read_as_text_and_only_as_needed() -> None:
    library = {
        "lib/__init__.py": "from .one import *\nfrom .two import make, Two\nfrom .never import Never",
        "lib/one.py": "__all__ = ['One']\nclass One: pass",
        "lib/two.py": "from .registry import register\n@register\ndef make(x): return x + 1\nclass Two: pass",
        "lib/never.py": "class Never: pass",
        "lib/registry.py": "TABLE = {}\ndef register(f):\n TABLE[f.__name__] = f\n return f",
    }
    ran = run("import lib\nr = lib.make(2), lib.One.__name__", library=library)
    assert ran["r"] == (3, "One")
    read = [where.file for where, _ in ran.machine.path]
    assert "<library>/lib/two.py" in read
    assert "<library>/lib/never.py" not in read


def test_a_registry_of_a_library_is_completed_when_asked() -> None:
    library = {
        "zoo/__init__.py": "from .registry import create\nfrom .nets import *\nfrom .others import *",
        "zoo/registry.py": "TABLE = {}\ndef register(f):\n TABLE[f.__name__] = f\n return f\ndef create(name):\n if name not in TABLE: raise RuntimeError(name)\n return TABLE[name]()",
        "zoo/nets.py": "from .registry import register\n@register\ndef net18(): return 18",
        "zoo/others.py": "from .registry import register\n@register\ndef other(): return 0",
    }
    ran = run("import zoo\nr = zoo.create('net18')", library=library)
    assert ran["r"] == 18
    assert "<library>/zoo/others.py" not in [where.file for where, _ in ran.machine.path]


def test_a_missing_module_is_an_unknown_by_name() -> None:
    ran = run("import no_such_thing as n\nx = n.f(3).y\nr = 4")
    assert ran["r"] == 4
    assert isinstance(ran["x"], Unknown)
    assert ran.gaps == ["module no_such_thing: not in the bundle, not on the library path, not a known library"]


def test_faults_of_modules_are_placed() -> None:
    ran = run("import broken\nr = 1", files={"broken.py": "x = (\n"})
    assert ran["r"] == 1
    assert [g.where.file for g in ran.machine.findings.gaps.values() if g.where] == ["broken.py"]


def test_library_frames_point_at_the_line_of_the_user() -> None:
    ran = run("import lib\nx = 1\nlib.f()", library={"lib.py": "def f():\n return {}['gone']"})
    (gap,) = ran.machine.findings.gaps.values()
    assert gap.where == ("main.py", 3)


def test_files_are_the_bundles_only() -> None:
    source = (
        "import json, os, glob\nfrom pathlib import Path\n"
        "with open('cfg.json') as f: a = json.load(f)\n"
        "b = json.loads(Path(__file__).parent.joinpath('cfg.json').read_text())\n"
        "r = a, b, os.path.exists('cfg.json'), os.path.isdir('pkg'), sorted(os.listdir('pkg')), glob.glob('*.json'), open('../../etc/passwd').read()"
    )
    ran = run(source, files=PACKAGE)
    *known, outside = ran["r"]
    assert known == [{"x": [1, 2]}, {"x": [1, 2]}, True, True, ["__init__.py", "a.py", "b.py", "sub"], ["cfg.json"]]
    assert isinstance(outside, Unknown)


def test_what_a_script_changes_in_a_library_class_ends_with_its_reading() -> None:
    change = (
        "import argparse\nargparse.ArgumentParser.extra = lambda self: 5\np = argparse.ArgumentParser()\nr = p.extra()"
    )
    assert run(change)["r"] == 5
    assert run("import argparse\nr = hasattr(argparse.ArgumentParser, 'extra')")["r"] is False


def test_a_file_beside_a_library_module() -> None:
    library = {
        "lib/__init__.py": "",
        "lib/parts.py": "import pkgutil\ndef read(n): return pkgutil.get_data(__name__, n).decode('utf-8').strip().split()",
        "lib/data/widths.txt": "8 16\n",
    }
    ran = run("from lib.parts import read\nr = read('data/widths.txt')", library=library)
    assert ran["r"] == ["8", "16"]
    assert ran.machine.internal_errors == []
