"""What is started: commands, images, environments, the docker line; and how ends and output are read."""

from __future__ import annotations

import shlex
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock_launcher.adapters.docker.engine import split_image
from oarlock_launcher.adapters.docker.frames import FrameLines
from oarlock_launcher.core.command import NothingToRun, Program, command_line
from oarlock_launcher.core.container import (
    Bind,
    Confinement,
    Container,
    DeviceAccess,
    GpuRequest,
    Node,
    docker_run_line,
)
from oarlock_launcher.core.environment import run_environment, visible_names
from oarlock_launcher.core.images import Image, NoImage, choose_image
from oarlock_launcher.core.logs import Line, LogLimits, admit, close, open_flow
from oarlock_launcher.core.outcome import out_of_memory_line, understand
from oarlock_launcher.core.record import closing_step, move
from oarlock_launcher.core.run import Ending
from oarlock_launcher.core.simulation import duration_seconds


def test_command_lines() -> None:
    def line(framework: str | None, count: int, **more: object) -> str:
        program = Program(framework, "train.py", ("--lr", "1e-3"), device_count=count, **more)  # type: ignore[arg-type]
        return " ".join(command_line(program, "python"))

    assert line(None, 1, command=()) == "python -u train.py --lr 1e-3"
    assert line("paddlepaddle", 1) == "python -u train.py --lr 1e-3"
    assert line("paddlepaddle", 4) == ("python -u -m paddle.distributed.launch --devices 0,1,2,3 train.py --lr 1e-3")
    assert line("paddlepaddle", 2, visible=("GPU-a", "GPU-b")) == (
        "python -u -m paddle.distributed.launch --devices GPU-a,GPU-b train.py --lr 1e-3"
    )
    assert line("pytorch", 2) == (
        "python -u -m torch.distributed.run --standalone --nproc-per-node 2 train.py --lr 1e-3"
    )
    two = Program("pytorch", "train.py", device_count=2)
    assert command_line(two, "python", torchrun=("torchrun",))[:4] == (
        "torchrun",
        "--standalone",
        "--nproc-per-node",
        "2",
    )
    assert line("pytorch", 2, command=("bash", "run.sh")) == "bash run.sh --lr 1e-3"
    with pytest.raises(NothingToRun):
        command_line(Program("pytorch", None), "python")


def test_devices_have_the_last_word_in_the_environment() -> None:
    environment, refused = run_environment(
        {"PATH": "/bin", "A": "base"},
        {
            "A": "mine",
            "CUDA_VISIBLE_DEVICES": "0,1,2",
            "NVIDIA_VISIBLE_DEVICES": "all",
            "ASCEND_RT_VISIBLE_DEVICES": "0",
            "OARLOCK_NATS_TOKEN": "x",
            "bad name": "x",
            "NUL": "a\0b",
            "GONE": "x",
        },
        {"CUDA_VISIBLE_DEVICES": "GPU-2"},
        unset=("GONE", "HIP_VISIBLE_DEVICES"),
    )
    assert environment == {"PATH": "/bin", "A": "mine", "CUDA_VISIBLE_DEVICES": "GPU-2"}
    assert len(refused) == 7
    assert visible_names({"CUDA_VISIBLE_DEVICES": "GPU-2, GPU-3"}, 2) == ("GPU-2", "GPU-3")
    assert visible_names({"NVIDIA_VISIBLE_DEVICES": "0,1"}, 2) is None
    assert visible_names({"CUDA_VISIBLE_DEVICES": ""}, 2) is None


def test_image_catalogue() -> None:
    def image(driver: str | None, **more: object) -> str:
        return choose_image("paddlepaddle", "nvidia", "A100-SXM4-40GB", driver, **more)  # type: ignore[arg-type]

    assert "cuda13.0" in image("580.65.06")
    assert "cuda12.6" in image("550.54.14")
    assert "cuda11.8" in image("550.54.13")
    # Which driver it is was not told: the image that runs on every one.
    assert "cuda11.8" in image(None)
    assert image("580.1", wanted="my:1") == "my:1"
    own = (Image("site/paddle:1", "paddlepaddle", "nvidia", "A100*"),)
    assert image("580.1", own=own) == "site/paddle:1"
    assert choose_image("paddlepaddle", "nvidia", "V100", "580.1", own=own) != "site/paddle:1"
    assert "paddle" in choose_image("numpy", "cpu", "CPU", None)
    with pytest.raises(NoImage, match="older than 450"):
        image("390.1")
    with pytest.raises(NoImage, match="image file"):
        choose_image("pytorch", "kunlunxin", "P800", None)
    assert split_image("host:5000/a/b") == ("host:5000/a/b", "latest")
    assert split_image("host:5000/a/b:1") == ("host:5000/a/b", "1")
    assert split_image("a@sha256:0") == ("a@sha256:0", None)


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


@given(words=st.lists(TEXT), value=TEXT)
def test_the_docker_line_survives_any_shell(words: list[str], value: str) -> None:
    container = Container(
        name="oarlock-s-t-1",
        image="img:1",
        command=("python", "-u", *words),
        environment={"V": value},
        working_folder="/workspace",
        binds=(Bind("/a b", "/workspace"), Bind("/o", "/output", read_only=False)),
        access=DeviceAccess(
            gpus=(GpuRequest("nvidia", ("GPU-1", "GPU-2")),),
            nodes=(Node("/dev/davinci1", "/dev/davinci1"),),
            groups=("video",),
            security_options=("seccomp=unconfined",),
        ),
        confinement=Confinement(memory_bytes=1024, network="none", user="1:1"),
        labels={"oarlock.task_id": "t"},
    )
    read = shlex.split(docker_run_line(container))
    assert read[:2] == ["docker", "run"]
    image = read.index("img:1")
    assert read[image + 1 :] == ["-u", *words]
    assert read[read.index("--entrypoint") + 1] == "python"
    assert f"V={value}" in read
    assert read[read.index("--gpus") + 1] == '"device=GPU-1,GPU-2"'
    for pair in (
        ("--cap-drop", "ALL"),
        ("--memory", "1024"),
        ("--device", "/dev/davinci1:/dev/davinci1:rwm"),
        ("--volume", "/a b:/workspace:ro"),
        ("--group-add", "video"),
    ):
        assert any((read[n], read[n + 1]) == pair for n in range(len(read) - 1)), pair


@pytest.mark.parametrize(
    "line",
    [
        "ResourceExhaustedError: ",
        "Out of memory error on GPU 0. Cannot allocate 1.953125GB memory on GPU 0, 39.123GB memory has been allocated",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
        "torch.cuda.OutOfMemoryError: CUDA out of memory.",
        "RuntimeError: CUDA error: out of memory",
        "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory",
        "MemoryError",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,)",
        "EL0004: Failed to allocate memory.",
        "terminate called after throwing an instance of 'std::bad_alloc'",
    ],
)
def test_frameworks_say_out_of_memory(line: str) -> None:
    assert out_of_memory_line(["step 1", line, "  at foo.py"]) == line
    assert understand(Ending(exit_code=1), oom_line=line).outcome == "oom"
    # A program that said so and went on well has not died of it.
    assert understand(Ending(exit_code=0), oom_line=line).outcome == "ok"


def test_ends_are_understood() -> None:
    assert out_of_memory_line(["freed memory", "no error: out of time"]) is None
    assert understand(Ending(exit_code=137, memory_killed=True)).outcome == "oom"
    killed = understand(Ending(exit_code=137))
    assert killed.outcome == "error" and "signal 9" in str(killed.message)
    assert understand(Ending()).outcome == "lost"
    assert understand(Ending(exit_code=0), "cancelled", "by ann").message == "by ann"
    assert understand(Ending(exit_code=127, note="cannot execute")).message == "cannot execute"


def test_record_moves() -> None:
    assert move("placed", 1, 1, "launching") == "apply"
    assert move("queued", 1, 1, "launching") == "early"
    assert move("running", 1, 1, "launching") == "done"
    assert move("cancelled", 1, 1, "succeeded") == "done"
    assert move("placed", 2, 1, "running") == "stale"
    assert closing_step("error", ends_task=False, retry_on_oom=True) is None
    assert closing_step("error", ends_task=True, retry_on_oom=True) == "failed"
    assert closing_step("oom", ends_task=True, retry_on_oom=True) is None
    assert closing_step("oom", ends_task=True, retry_on_oom=False) == "failed"
    assert closing_step("refused", ends_task=True, retry_on_oom=True) is None


def test_output_is_bounded() -> None:
    limits = LogLimits(lines_per_second=10, burst_lines=5, line_length=20, total_bytes=1000)
    flow, out = open_flow(limits, 0.0), []
    for number in range(1, 11):
        flow, more = admit(flow, Line("stdout", f"line {number}", number), limits, 0.0)
        out += more
    assert [line.number for line in out] == [1, 2, 3, 4, 5]
    flow, more = admit(flow, Line("stdout", "x" * 100, 11), limits, 0.1)
    assert [line.stream for line in more] == ["oarlock", "stdout"]
    assert more[0].text == "5 lines came too fast and were not sent"
    assert len(more[1].text) <= 20
    sent = []
    for number in range(12, 500):
        flow, more = admit(flow, Line("stdout", "y" * 19, number), limits, float(number))
        sent += more
    assert sum(len(line.text) for line in sent if line.stream == "stdout") <= 1000
    assert [line.text for line in sent if "over 1000 bytes" in line.text]
    assert close(flow, 499)[0].stream == "oarlock"


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=30)), max_size=20), st.integers(1, 17))
def test_frames_are_lines_however_they_are_cut(frames: list[tuple[int, bytes]], cut: int) -> None:
    stream = b"".join(struct.pack(">BxxxL", number, len(data)) + data for number, data in frames)
    splitter = FrameLines(1000)
    lines = [line for at in range(0, len(stream), cut) for line in splitter.feed(stream[at : at + cut])]
    lines += splitter.end()
    for number, name in ((1, "stdout"), (2, "stderr")):
        said = b"".join(data for which, data in frames if which == number).decode(errors="replace")
        if "\r" not in said:
            assert "\n".join(line.text for line in lines if line.stream == name) == said.removesuffix("\n")
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))


def test_simulated_durations() -> None:
    assert duration_seconds(3600.0, None, 1.0, 5.0) == 5.0
    assert duration_seconds(0.001, None, 1.0, 5.0) == 1.0
    assert duration_seconds(None, 0.02, 1.0, 5.0) == 2.0
    assert duration_seconds(None, None, 1.0, 5.0) == 5.0
