"""Peaks of one device from a trace."""

from __future__ import annotations

from dataclasses import replace

from tests.profiler.memory.hand_traces import A100, RTX_3090, WIDTH, linear_trace

from oarlock_profiler.core.engine.trace import Filters, Op, Trace
from oarlock_profiler.core.memory.allocator import PlainAllocator
from oarlock_profiler.core.memory.caching import CachingAllocator
from oarlock_profiler.core.memory.convolution import MORE_BYTES, Convolution, Scratch, layer_of, scratch_of
from oarlock_profiler.core.memory.libraries import CUBLAS_WORKSPACE_BYTES, Libraries
from oarlock_profiler.core.memory.peaks import Stack, peaks_of, runs_within
from oarlock_profiler.core.memory.replay import devices_of, replay
from oarlock_profiler.core.memory.whatif import with_batch, with_sizes

MIB = 1 << 20
WEIGHT = 4 * WIDTH * WIDTH


def test_first_step_and_steady_state_are_told_apart() -> None:
    usage = replay(linear_trace(batch=256), "gpu:0", PlainAllocator())
    rows = 4 * 256 * WIDTH
    # The first step has no optimiser state in its backward pass; in the second the old gradient is gone by then.
    assert usage.first_step_tensor_bytes == max(2 * WEIGHT + 2 * rows, 4 * WEIGHT + rows)
    assert usage.steady_tensor_bytes == 4 * WEIGHT + 2 * rows
    assert usage.tensor_bytes == usage.steady_tensor_bytes
    assert usage.parts_bytes == {
        "weights": WEIGHT,
        "gradients": WEIGHT,
        "optimizer": 2 * WEIGHT,
        "activations": rows,
        "inputs": rows,
    }
    assert (usage.peak_phase, usage.peak_op) == ("backward", "linear_backward")


def test_the_largest_holders_name_their_lines() -> None:
    usage = replay(linear_trace(batch=4096), "gpu:0", PlainAllocator(), top=2)
    assert [holder.nbytes for holder in usage.largest] == [4 * 4096 * WIDTH] * 2
    assert usage.largest[0].where is not None
    assert usage.largest[0].where.line == 7


def test_each_thread_keeps_its_cublas_workspace() -> None:
    usage = replay(linear_trace(batch=64), "gpu:0", CachingAllocator(), libraries=Libraries("pytorch", 80))
    assert usage.parts_bytes["workspace"] == 2 * CUBLAS_WORKSPACE_BYTES
    assert (
        "workspace"
        not in replay(
            linear_trace(batch=64), "gpu:0", CachingAllocator(), libraries=Libraries("paddlepaddle", 80)
        ).parts_bytes
    )


def test_a_script_without_an_accelerator_is_sized_in_main_memory() -> None:
    peaks = peaks_of(linear_trace(batch=64, device="cpu"), "pytorch", RTX_3090)
    assert peaks is not None
    assert peaks.on_host
    assert peaks.device.value == peaks.reserved.value + peaks.context.bytes.value


def test_the_three_peaks_grow_and_lie_in_their_intervals() -> None:
    peaks = peaks_of(linear_trace(batch=512), "pytorch", RTX_3090)
    assert peaks is not None
    assert peaks.allocated.value <= peaks.reserved.value < peaks.device.value
    for interval in (peaks.allocated, peaks.reserved, peaks.device):
        assert interval.low <= interval.value <= interval.high


def test_an_unknown_kind_gets_a_wide_context_and_says_so() -> None:
    known = peaks_of(linear_trace(batch=8), "pytorch", RTX_3090)
    unknown = peaks_of(linear_trace(batch=8), "pytorch", None)
    assert known is not None
    assert unknown is not None
    assert not known.context.assumed
    assert unknown.context.assumed
    width = unknown.context.bytes.high - unknown.context.bytes.low
    assert width > known.context.bytes.high - known.context.bytes.low


def test_paddle_may_take_most_of_the_device_at_once() -> None:
    flags = {"FLAGS_allocator_strategy": "naive_best_fit", "FLAGS_fraction_of_gpu_memory_to_use": "0.5"}
    peaks = peaks_of(linear_trace(batch=8), "paddlepaddle", RTX_3090, stack=Stack(environment=flags))
    assert peaks is not None
    assert peaks.reserved.value == RTX_3090.capacity_bytes // 2


def test_devices_are_listed_by_what_they_were_asked_for() -> None:
    trace = linear_trace(batch=8)
    held = trace.allocate(10, "other", device="cpu", op="x", where=None)
    assert list(devices_of(trace)) == ["gpu:0", "cpu"]
    del held


def test_an_empty_trace_has_no_peaks() -> None:
    assert peaks_of(Trace(), "pytorch", RTX_3090) is None


def test_another_batch_scales_samples_and_leaves_parameters() -> None:
    half = replay(with_batch(linear_trace(batch=512), 0.5), "gpu:0", PlainAllocator())
    read_anew = replay(linear_trace(batch=256), "gpu:0", PlainAllocator())
    assert half.tensor_bytes == read_anew.tensor_bytes


def test_sharded_states_shrink_by_their_share() -> None:
    full = replay(linear_trace(batch=64), "gpu:0", PlainAllocator()).parts_bytes
    sharded = with_sizes(linear_trace(batch=64), {"parameter": 0.25, "gradient": 0.25, "optimizer": 0.25})
    parts = replay(sharded, "gpu:0", PlainAllocator()).parts_bytes
    assert parts["optimizer"] == full["optimizer"] // 4


def test_it_runs_within_a_device_that_holds_the_tensors() -> None:
    trace = linear_trace(batch=4096, layers=8)
    assert runs_within(trace, "pytorch", A100)
    tiny = RTX_3090.__class__("tiny", "nvidia", 400 * MIB, arch="sm_86")
    assert not runs_within(trace, "pytorch", tiny)


def test_scratch_of_a_convolution_is_its_padded_copies_and_more_for_the_weights_gradient() -> None:
    samples, channels, size = 38, 89, 32
    tensor = 4 * samples * channels * size * size
    weight = 4 * channels * channels * 9
    flops = 4 * (tensor // 4) * channels * 9
    filters = Filters(channels, channels, 9, 1, size * size)
    moved = 3 * tensor + 2 * weight
    op = Op("conv2d_backward", "conv2d_grad", "float32", "backward", flops, moved, 0, "", None, True, filters)
    copies = 2 * (tensor // 89 * 92) + weight * 92 * 92 // (89 * 89)
    taken = Libraries("pytorch", 80).scratch_bytes(op, [tensor, weight])
    assert taken == ((copies, copies + MORE_BYTES), True)
    older = Libraries("pytorch", 70).scratch_bytes(op, [tensor, weight])
    assert older == ((), True)  # float32 has no tensor cores there


def test_a_first_layers_gradient_needs_its_weight_alone() -> None:
    samples, made, size = 4, 113, 64
    x, y, weight = 4 * samples * 3 * size**2, 4 * samples * made * size**2, 4 * made * 27
    filters = Filters(3, made, 9, 1, size * size)
    op = Op("conv2d_backward", "", "float32", "backward", 2 * (y // 4) * 27, x + y + weight, 0, "", None, True, filters)
    layer = layer_of(op, [weight])
    assert layer == Convolution(x, y, weight, filters, first=True)
    assert scratch_of(layer).weight_gradient > y
    assert scratch_of(replace(layer, filters=filters._replace(out_channels=112))) == Scratch()


def test_a_convolution_of_no_channels_has_no_layer() -> None:
    op = Op("conv2d", "", "float32", "forward", 0, 1024, 0, "", None, True, Filters(0, 0, 9, 1, 64))
    assert layer_of(op, [1024]) is None


def convolution(*, stride: int, channels: int, kernel: int) -> Convolution:
    tensor = 4 * 16 * channels * 64 * 64
    weight = 4 * channels * channels * kernel * kernel
    filters = Filters(channels, channels, kernel * kernel, 1, 64 * 64 // stride**2)
    return Convolution(tensor, tensor // stride**2, weight, filters)


def test_narrow_convolutions_take_less_scratch() -> None:
    usual = scratch_of(convolution(stride=1, channels=64, kernel=3))
    assert usual.weight_gradient > usual.input_gradient > 0
    assert scratch_of(convolution(stride=1, channels=24, kernel=1)) == Scratch()
    narrow = scratch_of(convolution(stride=1, channels=24, kernel=3))
    assert (narrow.forward, narrow.input_gradient) == (0, 0)
    strided = scratch_of(convolution(stride=2, channels=64, kernel=3))
    assert 0 < strided.forward < strided.weight_gradient
    assert not scratch_of(convolution(stride=1, channels=512, kernel=3)).settled


def test_a_full_device_does_without_scratch() -> None:
    tensor, weight = 4 * 16 * 64 * 64 * 64, 4 * 64 * 64 * 9
    flops = 4 * (tensor // 4) * 64 * 9
    trace = Trace()
    trace.phase = "backward"
    kept = [trace.allocate(n, "saved", device="gpu:0", op="conv2d", where=None) for n in (tensor, tensor, weight)]
    filters = Filters(64, 64, 9, 1, 64 * 64)
    moved = 2 * tensor + weight
    trace.add(Op("conv2d", "conv2d", "float32", "forward", flops // 2, moved, 0, "", None, True, filters))
    made = [trace.allocate(n, "temporary", device="gpu:0", op="conv2d", where=None) for n in (tensor, weight)]
    moved = 3 * tensor + 2 * weight
    trace.add(Op("conv2d_backward", "conv2d_grad", "float32", "backward", flops, moved, 0, "", None, True, filters))
    libraries = Libraries("pytorch", 80)
    free = replay(trace, "gpu:0", CachingAllocator(), libraries=libraries)
    assert free.reserved_bytes > 5 * tensor
    assert free.unsettled_bytes == 0
    full = replay(trace, "gpu:0", CachingAllocator(4 * tensor), libraries=libraries)
    assert full.out_of_memory is None
    assert full.reserved_bytes <= 4 * tensor
    del kept, made


def test_what_was_reserved_counts_after_it_was_given_back() -> None:
    trace = Trace()
    for nbytes in (60 * MIB, 20 * MIB, 80 * MIB):
        storage = trace.allocate(nbytes, "activation", device="gpu:0", op="", where=None)
        del storage
    usage = replay(trace, "gpu:0", CachingAllocator(100 * MIB))
    assert usage.out_of_memory is None
    assert usage.reserved_bytes == 80 * MIB
    trace.allocate(MIB, "activation", device="gpu:0", op="", where=None)
    assert replay(trace, "gpu:0", CachingAllocator(81 * MIB)).reserved_bytes == 80 * MIB
