"""``os``, ``os.path``, ``sys``, ``shutil``, ``glob``, ``platform``, processes and sockets.

There is no file system but the bundle, no process and no network. What exists outside the bundle is unknown.
"""

# ruff: noqa: E501 - tables

from __future__ import annotations

import fnmatch
import posixpath
import sys
from typing import Any, NamedTuple

from oarlock_profiler.core.interpreter.descriptors import Property
from oarlock_profiler.core.interpreter.errors import EXCEPTIONS, Raised, exception
from oarlock_profiler.core.interpreter.formatting import text
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    BoundMethod,
    Context,
    Function,
    HostObject,
    Iteration,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.host_functions import nothing, pure, unknown_result
from oarlock_profiler.core.overlays.registry import entry, register
from oarlock_profiler.core.overlays.stdlib_files import BUNDLE, File, bundle_path, is_file, locate

LIBRARIES = (
    "os", "sys", "shutil", "glob", "platform", "subprocess", "socket", "signal", "tempfile", "getpass", "threading",
    "multiprocessing", "concurrent", "gc", "resource", "psutil", "fcntl", "errno", "stat", "atexit", "pwd", "fnmatch",
    "urllib", "requests", "wget", "gdown", "ssl", "http", "select", "ctypes", "faulthandler", "tracemalloc", "queue",
    "asyncio", "posixpath", "locale", "pdb", "cProfile", "pstats", "profile", "unittest", "doctest", "pynvml",
)  # fmt: skip

# -- paths -----------------------------------------------------------------------------------------------------------


def _path_text(m: Any, value: Value) -> Value:
    if isinstance(value, (HostObject,)) or (hasattr(value, "attrs") and not isinstance(value, str)):
        method = m.find(value, "__fspath__")
        return m.call(method) if method is not MISSING else Unknown("a path that is not known", m.where, "str")
    return value


def _on_paths(name: str, function: Any, hint: str = "str") -> None:
    def call(m: Any, *args: Value) -> Value:
        given = [_path_text(m, a) for a in args]
        for one in given:
            if isinstance(one, Unknown):
                return Unknown(one.why, one.where, hint, name=one.name)
        if sum(len(g) for g in given if isinstance(g, str)) > 10_000:
            return m.unknown("a path of more than 10,000 characters", hint=hint)
        return m.host(function, *given)

    for module in ("os.path", "posixpath"):
        register(f"{module}.{name}", Native(f"{module}.{name}", call))


def absolute(path: str) -> str:
    """``os.path.abspath`` from the bundle's root."""
    return posixpath.normpath(path if path.startswith("/") else posixpath.join(BUNDLE, path))


for _name in ("join", "basename", "dirname", "normpath", "normcase", "commonprefix"):
    _on_paths(_name, getattr(posixpath, _name))
for _name in ("split", "splitext", "splitdrive"):
    _on_paths(_name, getattr(posixpath, _name), "tuple")
_on_paths("isabs", posixpath.isabs, "bool")
_on_paths("abspath", absolute)
_on_paths("realpath", absolute)
_on_paths("expanduser", lambda p: p.replace("~", "/root", 1) if p.startswith("~") else p)
_on_paths("expandvars", lambda p: p)
_on_paths("relpath", lambda p, start=BUNDLE: posixpath.relpath(absolute(p), absolute(start)))
for _name in ("fspath", "fsdecode"):
    register(f"os.{_name}", Native(f"os.{_name}", _path_text))


@entry("os.path.commonpath")
def commonpath(m: Any, paths: Value) -> Value:
    given = m.listed(paths)
    return m.host(posixpath.commonpath, given) if all(isinstance(p, str) for p in given) else m.derived("a path", "str")


def exists(m: Any, path: Value, kind: str = "any") -> Value:
    """True for what is in the bundle; unknown for anything else, for the machine it will run on decides."""
    path = _path_text(m, path)
    found = locate(m, path)
    if found is not None:
        return kind != "folder"
    inside = bundle_path(m, path)
    if inside is not None and (inside == "" or list(m.sources.listdir(inside))):
        return kind != "file"
    shown = path[:120] if isinstance(path, str) else "a path that is not known"
    if path == "" or path is None:
        return False
    return Unknown(f"whether {shown} exists is only known where the script runs", m.where, "bool", name="exists")


for _module in ("os.path", "posixpath"):
    register(f"{_module}.exists", Native("os.path.exists", exists))
    register(f"{_module}.lexists", Native("os.path.lexists", exists))
    register(f"{_module}.isfile", Native("os.path.isfile", lambda m, path: exists(m, path, "file")))
    register(f"{_module}.isdir", Native("os.path.isdir", lambda m, path: exists(m, path, "folder")))
register("os.access", Native("os.access", lambda m, path, *_mode: exists(m, path)))
register("os.path.islink", Native("os.path.islink", lambda m, _path: False))
register("os.path.ismount", Native("os.path.ismount", lambda m, _path: False))
register("os.path.sep", "/")
for _name, _value in (
    ("sep", "/"),
    ("pathsep", ":"),
    ("linesep", "\n"),
    ("name", "posix"),
    ("curdir", "."),
    ("pardir", ".."),
    ("devnull", "/dev/null"),
    ("R_OK", 4),
    ("W_OK", 2),
    ("X_OK", 1),
    ("F_OK", 0),
    ("O_RDONLY", 0),
):
    register(f"os.{_name}", _value)
for _name in ("PathLike", "DirEntry"):
    register(f"os.{_name}", EXCEPTIONS["Exception"].mro[-1])


def _absent_listing(m: Any, path: Value) -> Unknown:
    shown = path[:120] if isinstance(path, str) else ""
    why = f"the folder {shown} is not in the bundle" if shown else "a folder that is not known"
    item = Unknown(why, m.where, "str", name="file name")
    return Unknown(why, m.where, "list", item=item, name=f"files of {shown}" if shown else None)


@entry("os.listdir")
def listdir(m: Any, path: Value = ".") -> Value:
    inside = bundle_path(m, _path_text(m, path))
    if inside is not None:
        names = list(m.sources.listdir(inside))
        if names or inside == "":
            return names
    return _absent_listing(m, path)


@entry("os.scandir")
def scandir(m: Any, path: Value = ".") -> Value:
    return _absent_listing(m, path)


@entry("os.walk")
def walk(m: Any, top: Value, *_args: Value, **_kw: Value) -> Value:
    inside = bundle_path(m, _path_text(m, top))
    if inside is not None and list(m.sources.listdir(inside)):
        out: list[Value] = []
        pending = [inside]
        while pending and len(out) < 1000:
            folder = pending.pop()
            folders: list[str] = []
            files: list[str] = []
            for name in m.sources.listdir(folder):
                m.spend()
                path = posixpath.join(folder, name)
                (files if is_file(m, path) else folders).append(name)
            out.append((folder or ".", folders, files))
            pending += [posixpath.join(folder, f) for f in folders]
        return iter(out)
    names = _absent_listing(m, top)
    return Unknown(names.why, names.where, "list", item=(names.item, names, names))


@entry("glob.glob", "glob.iglob")
def glob(m: Any, pattern: Value, *_args: Value, recursive: Value = False, **_kw: Value) -> Value:
    inside = bundle_path(m, _path_text(m, pattern))
    if inside is not None:
        found = [p for p in _all_files(m) if fnmatch.fnmatchcase(p, inside.replace("**/", "*"))]
        fixed = inside.partition("*")[0].rpartition("/")[0]
        if found or (fixed and list(m.sources.listdir(fixed))):
            return found
    return _absent_listing(m, pattern)


def _all_files(m: Any) -> list[str]:
    found: list[str] = []
    pending = [""]
    while pending and len(found) < 10_000:
        folder = pending.pop()
        for name in m.sources.listdir(folder):
            m.spend()
            path = posixpath.join(folder, name)
            (found if is_file(m, path) else pending).append(path)
    return sorted(found)


pure("fnmatch.fnmatch", lambda n, p: fnmatch.fnmatchcase(n, p) if len(p) < 200 else False, "bool")
pure("fnmatch.filter", lambda n, p: [x for x in n if len(p) < 200 and fnmatch.fnmatchcase(x, p)], "list")
register("os.getcwd", Native("os.getcwd", lambda _m: BUNDLE))
register("os.getcwdb", Native("os.getcwdb", lambda _m: BUNDLE.encode()))
nothing(
    "os.makedirs", "os.mkdir", "os.remove", "os.unlink", "os.rmdir", "os.removedirs", "os.rename", "os.replace",
    "os.chdir",
    "os.chmod", "os.chown", "os.symlink", "os.link", "os.utime", "os.close", "os.sync", "os.nice", "os.umask",
    "os.kill",
    "os.putenv", "os.unsetenv", "os.sched_setaffinity", "os.setpgrp", "os.register_at_fork", "os.fsync", "os.truncate",
    "shutil.rmtree", "shutil.copy", "shutil.copyfile", "shutil.copy2", "shutil.copytree", "shutil.move",
    "shutil.copyfileobj",
    "shutil.make_archive", "shutil.unpack_archive", "gc.collect", "gc.enable", "gc.disable", "gc.freeze",
    "gc.set_threshold",
    "signal.signal", "signal.alarm", "atexit.register", "resource.setrlimit", "faulthandler.enable",
    "tracemalloc.start",
    "multiprocessing.set_start_method", "multiprocessing.freeze_support", "threading.excepthook", "fcntl.flock",
    "fcntl.fcntl",
    "multiprocessing.set_sharing_strategy", "sys.setrecursionlimit", "sys.settrace", "sys.exc_clear",
    "locale.setlocale",
    "pdb.set_trace", "sys.setswitchinterval", "sys.addaudithook", "sys.setcheckinterval", "asyncio.set_event_loop",
)  # fmt: skip
for _name in ("os.path.getsize", "os.path.getmtime", "os.path.getctime", "os.path.getatime"):
    unknown_result("int", "a property of a file where the script runs", _name)
unknown_result(
    None, "a property of the machine where the script runs", "os.stat", "os.lstat", "os.uname", "os.statvfs",
    "os.sched_getaffinity", "resource.getrusage", "resource.getrlimit", "psutil.virtual_memory", "psutil.Process",
    "shutil.disk_usage", "os.times", "psutil.disk_usage", "os.open", "os.pipe", "os.get_terminal_size",
    "shutil.get_terminal_size", "gc.get_objects", "gc.get_referrers", "tracemalloc.take_snapshot",
    "pynvml.nvmlDeviceGetHandleByIndex", "pynvml.nvmlDeviceGetMemoryInfo",
)  # fmt: skip
unknown_result(
    "int",
    "a number that only the running process has",
    "os.getpid",
    "os.getppid",
    "os.getuid",
    "os.getgid",
    "os.getpgid",
    "threading.get_ident",
    "threading.active_count",
    "psutil.cpu_count",
)
unknown_result(
    "str", "a name of the machine where the script runs", "socket.gethostname", "socket.getfqdn", "platform.node",
    "getpass.getuser", "os.getlogin", "platform.platform", "platform.processor", "tempfile.mkdtemp",
    "tempfile.gettempdir", "tempfile.mktemp", "socket.gethostbyname", "os.ctermid", "os.readlink", "shutil.which",
    "platform.release", "platform.version",
)  # fmt: skip
unknown_result(None, "random bytes", "os.urandom")
unknown_result(
    None, "the reader starts no process", "os.system", "os.popen", "os.fork", "os.execv", "os.execvp", "os.spawnl",
    "os.waitpid", "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output",
    "subprocess.Popen", "subprocess.getoutput", "subprocess.getstatusoutput", quiet=False,
)  # fmt: skip
unknown_result(
    None, "the reader opens no connection", "socket.socket", "socket.create_connection", "urllib.request.urlopen",
    "urllib.request.urlretrieve", "urllib.request.Request", "requests.get", "requests.post", "requests.Session",
    "requests.request", "wget.download", "gdown.download", "gdown.cached_download", "http.client.HTTPSConnection",
    "http.server.HTTPServer", quiet=False,
)  # fmt: skip
unknown_result(
    None,
    "native code is not run",
    "ctypes.CDLL",
    "ctypes.cdll.LoadLibrary",
    "ctypes.c_int",
    "ctypes.byref",
    "ctypes.cast",
)
pure("urllib.parse.quote", lambda s, *_a, **_k: s, "str")
pure("urllib.parse.unquote", lambda s, *_a, **_k: s, "str")
unknown_result("tuple", "an address", "urllib.parse.urlparse", "urllib.parse.urlsplit")
for _name in ("PIPE", "STDOUT", "DEVNULL"):
    register(f"subprocess.{_name}", {"PIPE": -1, "STDOUT": -2, "DEVNULL": -3}[_name])
for _name in ("CalledProcessError", "TimeoutExpired", "SubprocessError"):
    register(f"subprocess.{_name}", EXCEPTIONS["Exception"])
for _name in ("HTTPError", "URLError"):
    register(f"urllib.error.{_name}", EXCEPTIONS["OSError"])
register("socket.error", EXCEPTIONS["OSError"])
register("os.error", EXCEPTIONS["OSError"])
register("shutil.SameFileError", EXCEPTIONS["OSError"])
for _name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIG_DFL", "SIG_IGN", "SIGALRM", "SIGKILL"):
    register(f"signal.{_name}", _name)
for _name, _value in (("ENOENT", 2), ("EEXIST", 17), ("EACCES", 13)):
    register(f"errno.{_name}", _value)
for _name in ("AF_INET", "SOCK_STREAM", "SOL_SOCKET", "SO_REUSEADDR", "LOCK_EX", "RLIMIT_NOFILE"):
    register(f"{'fcntl' if _name == 'LOCK_EX' else 'resource' if _name.startswith('RLIMIT') else 'socket'}.{_name}", 1)


@entry("os._exit", "os.abort")
def hard_exit(m: Any, *_code: Value) -> Value:
    raise Raised(exception("SystemExit", ""))


@entry("os.cpu_count", "multiprocessing.cpu_count")
def cpu_count(m: Any) -> Value:
    return Unknown("the number of processors where the script runs", m.where, "int", 1, 1024, name="cpu_count")


# -- environment -----------------------------------------------------------------------------------------------------


def environment(m: Any) -> dict[str, Value]:
    """The environment given with the task, and what a launcher sets for several devices."""
    found = m.state.get("environ")
    if found is None:
        found = m.state["environ"] = dict(m.request.environment)
        if m.request.world_size > 1:
            size = str(m.request.world_size)
            for name, value in (
                ("WORLD_SIZE", size), ("RANK", "0"), ("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", size),
                ("NODE_RANK", "0"),
                ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500"), ("PADDLE_TRAINER_ID", "0"),
                ("PADDLE_TRAINERS_NUM", size),
            ):  # fmt: skip
                found.setdefault(name, value)
        found.setdefault("HOME", "/root")
    return found  # type: ignore[no-any-return]


class Environ(HostObject):
    """``os.environ``: what was given with the task; a variable that was not given is absent."""

    def py_type(self) -> str:
        return "os._Environ"

    def py_getitem(self, context: Any, key: Value) -> Value:
        values = environment(context)
        if isinstance(key, Unknown):
            return Unknown(key.why, key.where, "str")
        if key in values:
            context.findings.fact(f"environment {key}", values[key], context.where)
            return values[key]
        if key in ("LOCAL_RANK", "RANK", "NODE_RANK", "PADDLE_TRAINER_ID") and not context.caught(
            EXCEPTIONS["KeyError"]
        ):
            return "0"
        if key in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "PADDLE_TRAINERS_NUM") and not context.caught(
            EXCEPTIONS["KeyError"]
        ):
            return str(context.request.world_size)
        found = context.fail("KeyError", f"the environment variable {key} was not given with the task")
        return Unknown(found.why, found.where, "str", name=f"environment {key}")

    def py_setitem(self, context: Any, key: Value, value: Value) -> None:
        if isinstance(key, str):
            environment(context)[key] = value

    def py_binary(self, context: Any, op: str, other: Value, reflected: bool) -> Value:
        return other in environment(context) if op == "in" else MISSING

    def py_iterate(self, context: Any) -> Iteration | None:
        return Iteration(list(environment(context)))

    def py_len(self, context: Any) -> Value:
        return len(environment(context))

    def py_getattr(self, context: Any, name: str) -> Value:
        if name in ("get", "setdefault", "pop", "items", "keys", "values", "copy", "update", "__delitem__"):
            return context.getattr(environment(context), name)
        return MISSING


register("os.environ", Environ())
register("os.environb", Environ())


@entry("os.getenv")
def getenv(m: Any, key: Value, default: Value = None) -> Value:
    return m.call(m.getattr(environment(m), "get"), [key, default])


# -- sys -------------------------------------------------------------------------------------------------------------


def sys_attribute(m: Any, name: str) -> Value:
    """``sys.argv``, ``sys.path``, ``sys.modules``: made when first asked for."""
    kept = m.state.setdefault("sys", {})
    if name not in kept:
        if name == "argv":
            kept[name] = [m.request.entry, *m.request.arguments]
        elif name == "path":
            folder = posixpath.dirname(m.request.entry)
            kept[name] = [posixpath.join(BUNDLE, folder) if folder else BUNDLE]
        elif name == "modules":
            kept[name] = m.importer.modules
    return kept.get(name, MISSING)


class _VersionInfo(NamedTuple):
    major: int
    minor: int
    micro: int
    releaselevel: str
    serial: int


_SYS: tuple[tuple[str, Value], ...] = (
    ("platform", "linux"), ("maxsize", sys.maxsize), ("byteorder", "little"), ("executable", "/usr/bin/python3"),
    ("version", f"{sys.version_info.major}.{sys.version_info.minor}.0"), ("prefix", "/usr"), ("flags", None),
    ("version_info", _VersionInfo(sys.version_info.major, sys.version_info.minor, 0, "final", 0)),
    ("stdin", File("stdin", None, "typed in by a person")),
    ("stdout", File("stdout", None, "")), ("stderr", File("stderr", None, "")),
    ("__stdout__", File("stdout", None, "")),
    ("exc_info", Native("sys.exc_info", lambda _m: (None, None, None))), ("float_info", None), ("gettrace", Native("sys.gettrace", lambda _m: None)),
    ("getrecursionlimit", Native("sys.getrecursionlimit", lambda _m: 1000)), ("hexversion", sys.hexversion),
    ("base_prefix", "/usr"),
    ("getdefaultencoding", Native("sys.getdefaultencoding", lambda _m: "utf-8")),
    ("intern", Native("sys.intern", lambda _m, s: s)), ("excepthook", None), ("implementation", None),
    ("warnoptions", []),
)  # fmt: skip
for _name, _value in _SYS:
    register(f"sys.{_name}", _value)
for _name in ("argv", "path", "modules"):
    register(f"sys.{_name}", Property(Native(f"sys.{_name}", lambda m, _name=_name: sys_attribute(m, _name))))
unknown_result("int", "a size in the running process", "sys.getsizeof", "sys.getrefcount")


@entry("sys.exit")
def sys_exit(m: Any, code: Value = 0) -> Value:
    shown = text(m, code) if not isinstance(code, Unknown) else ""
    raise Raised(exception("SystemExit", shown if isinstance(shown, str) else ""))


_PLATFORM: tuple[tuple[str, Value], ...] = (
    ("system", "Linux"),
    ("machine", "x86_64"),
    ("python_version", f"{sys.version_info.major}.{sys.version_info.minor}.0"),
    ("architecture", ("64bit", "ELF")),
)
for _name, _value in _PLATFORM:
    register(f"platform.{_name}", Native(f"platform.{_name}", lambda _m, *_a, _v=_value: _v))


# -- threads and processes -------------------------------------------------------------------------------------------


class Pool(HostObject):
    """A pool of workers: maps are done in place."""

    def py_type(self) -> str:
        return "multiprocessing.Pool"

    def _map(self, m: Any, function: Value, *iterables: Value, **_kw: Value) -> Value:
        return [m.invoke(function, list(items), None) for items in zip(*(m.listed(i) for i in iterables), strict=False)]

    def _star(self, m: Any, function: Value, items: Value, *_a: Value, **_kw: Value) -> Value:
        return [m.call(function, m.listed(item)) for item in m.listed(items)]

    def _submit(self, m: Any, function: Value, *args: Value, **kwargs: Value) -> Value:
        return Future(m.call(function, args, kwargs))

    def _apply(
        self, m: Any, function: Value, args: Value = (), kwds: Value = None, *_more: Value, **_kw: Value
    ) -> Value:
        return Future(m.call(function, m.listed(args), kwds or None))

    def py_getattr(self, context: Context, name: str) -> Value:
        found: Any = {
            "map": self._map, "imap": self._map, "imap_unordered": self._map, "map_async": self._map, "starmap": self._star,
            "submit": self._submit, "apply_async": self._apply, "apply": lambda m, *a, **k: self._apply(m, *a, **k).value,
            "__enter__": lambda _m: self,
        }.get(name)  # fmt: skip
        if found is not None:
            return Native(f"Pool.{name}", found)
        if name in ("close", "join", "terminate", "shutdown", "__exit__"):
            return Native(f"Pool.{name}", lambda _m, *_a, **_k: None)
        return MISSING


class Future(HostObject):
    """A result that is there already."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("result", "get"):
            return Native("Future.result", lambda _m, *_a, **_k: self.value)
        return Native("Future.done", lambda _m: True) if name in ("done", "wait", "ready") else MISSING


@entry(
    "multiprocessing.Pool",
    "multiprocessing.pool.Pool",
    "multiprocessing.pool.ThreadPool",
    "concurrent.futures.ThreadPoolExecutor",
    "concurrent.futures.ProcessPoolExecutor",
    "multiprocessing.dummy.Pool",
)
def pool(m: Any, *_args: Value, **_kw: Value) -> Value:
    return Pool()


@entry("concurrent.futures.as_completed")
def as_completed(m: Any, futures: Value, *_args: Value, **_kw: Value) -> Value:
    return m.listed(futures)


class Lock(HostObject):
    """A lock, condition or semaphore: always free."""

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "__enter__":
            return Native("Lock.__enter__", lambda _m: self)
        if name in ("locked", "wait", "acquire"):
            return Native(f"Lock.{name}", lambda m, *_a, **_k: True)
        return Native(f"Lock.{name}", lambda _m, *_a, **_k: None)


for _name in ("threading.Lock", "threading.RLock", "threading.Condition", "threading.Semaphore", "threading.BoundedSemaphore", "threading.Barrier", "multiprocessing.Lock", "multiprocessing.Manager", "multiprocessing.Value"):  # fmt: skip
    register(_name, Native(_name, lambda _m, *_a, **_k: Lock()))
register("threading.main_thread", Native("threading.main_thread", lambda _m: Lock()))
register("threading.current_thread", Native("threading.current_thread", lambda _m: Lock()))


@entry("asyncio.run", "asyncio.get_event_loop().run_until_complete")
def asyncio_run(m: Any, value: Value, *_a: Value, **_k: Value) -> Value:
    return value


@entry("asyncio.create_task", "asyncio.ensure_future", "asyncio.shield", "asyncio.wait_for", "asyncio.to_thread")
def asyncio_task(m: Any, value: Value, *args: Value, **_k: Value) -> Value:
    """What is awaited later: coroutines are run where they are made."""
    return m.call(value, args) if isinstance(value, (Function, BoundMethod)) else value


@entry("asyncio.sleep")
def asyncio_sleep(m: Any, _seconds: Value = 0, result: Value = None) -> Value:
    return result


@entry("asyncio.gather")
def asyncio_gather(m: Any, *values: Value, **_k: Value) -> Value:
    return list(values)


@entry("multiprocessing.get_context")
def get_context(m: Any, *_args: Value) -> Value:
    return m.importer.load("multiprocessing")


@entry("tempfile.TemporaryDirectory", "tempfile.NamedTemporaryFile", "tempfile.TemporaryFile")
def temporary(m: Any, *_args: Value, **_kw: Value) -> Value:
    return File("/tmp/file", None, "a temporary file", writes=True)  # noqa: S108 - a name only, nothing is opened
