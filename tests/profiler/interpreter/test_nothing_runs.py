"""Reading a script imports, executes and opens nothing of it: the host's own audit events say so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROBE = """
import sys, time
from oarlock_profiler.core.interpreter.budget import Budget, Limits
from oarlock_profiler.core.interpreter.machine import Machine
from oarlock_profiler.core.findings import Findings
from oarlock_profiler.core.reader import interpret
from oarlock_profiler.core.reading import Request
from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.overlays import load
for library in ("os", "sys", "subprocess", "socket", "json", "pickle", "importlib", "ctypes", "pathlib", "yaml", "argparse"):
    load(library)
import yaml

class Engine:
    steady = False
    backward_calls = unstepped = micro_batches = 0
    def __init__(self): self.trace = Trace()

class Files:
    def __init__(self, files): self.files = files
    def read(self, path): return self.files.get(path)
    def exists(self, path): return path in self.files
    def listdir(self, path): return []
    def library(self, module): return None
    def library_file(self, package, path): return None

seen = []
WATCHED = ("exec", "import", "open", "os.system", "subprocess.Popen", "socket.connect", "os.remove", "os.mkdir", "os.listdir", "ctypes.dlopen",
           "os.putenv", "shutil.rmtree", "os.exec", "os.fork", "os.posix_spawn", "socket.__new__", "pickle.find_class", "code.__new__")
armed = False
def hook(event, args):
    if armed and event in WATCHED:
        seen.append((event, str(args[:1])[:200]))
sys.addaudithook(hook)
source = open(sys.argv[1], "rb").read()
files = {"main.py": source, "helper.py": b"import os\\nos.system('touch helper_ran')\\nX = open('/etc/passwd').read()\\n"}
request = Request("main.py", ["--x", "1"])
for armed in (False, True):
    # the first reading imports what the reader itself needs; the second must raise no event at all
    machine = Machine(request, Files(files), Engine(), Findings(), Budget(Limits(seconds=20), time.monotonic))
    stopped = interpret(machine, request)
armed = False
print(stopped, seen)
"""

_SCRIPT = """
import os, sys, subprocess, socket, json, pickle, importlib, ctypes, pathlib, yaml, argparse
import helper
os.system("touch main_ran")
subprocess.run(["touch", "main_ran"])
subprocess.Popen("id", shell=True)
os.popen("id").read()
eval("os.system('id')")
exec("import os; os.remove('/tmp/x')")
compile("1", "x", "eval")
__import__("antigravity")
importlib.import_module("this")
open("/etc/passwd").read()
open("out.txt", "w").write("x")
pathlib.Path("/etc/passwd").read_text()
pathlib.Path("made").mkdir()
os.makedirs("made")
os.listdir("/")
os.environ["PATH"] = "/x"
socket.socket().connect(("localhost", 1))
pickle.loads(b"cos\\nsystem\\n(S'id'\\ntR.")
yaml.load("!!python/object/apply:os.system ['id']", Loader=yaml.UnsafeLoader)
ctypes.CDLL("libc.so.6").system(b"id")
parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
parser.add_argument("--x", type=open)
parser.parse_args(["--x", "/etc/passwd", "@/etc/passwd"])
class A:
    def __reduce__(self): return (os.system, ("id",))
    def __del__(self): os.system("id")
A()
().__class__.__base__.__subclasses__()
(lambda: 0).__globals__["__builtins__"]
print.__self__.__import__("os")
"""


def test_reading_runs_nothing(tmp_path: Path) -> None:
    script = tmp_path / "hostile.py"
    script.write_text(_SCRIPT)
    done = subprocess.run(
        [sys.executable, "-I", "-c", _PROBE, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert last == "None []", last
    assert sorted(p.name for p in tmp_path.iterdir()) == ["hostile.py"]


_BROKEN = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from oarlock_profiler.core.interpreter.newer_syntax import NOWHERE, parse
opened.clear()
try:
    parse("def f(:\\n  pass")
except SyntaxError as error:
    print(error.lineno, [path for path in opened if path != NOWHERE])
"""


def test_a_syntax_error_opens_no_file_of_ours(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("x = 1")
    (tmp_path / "<unknown>").write_text("x = 1")
    done = subprocess.run(
        [sys.executable, "-I", "-c", _BROKEN], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "1 []", done.stderr
