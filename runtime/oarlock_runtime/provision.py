"""Making streams and buckets exist as :mod:`oarlock_runtime.topology` describes them."""

from __future__ import annotations

import asyncio

import nats.errors
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NotFoundError, ServiceUnavailableError

from oarlock_runtime.errors import BusUnavailable, PermanentError
from oarlock_runtime.subjects import Subjects
from oarlock_runtime.topology import BUCKETS, bucket_config, bundles_config, stream_config, streams

_NAME_IN_USE = 10058


async def provision(jetstream: JetStreamContext, subjects: Subjects) -> None:
    """Create what is missing and update what differs. See ``Bus.ensure`` for what is raised."""
    configs = [
        *(stream_config(spec) for spec in streams(subjects)),
        *(bucket_config(subjects, spec) for spec in BUCKETS),
        bundles_config(subjects),
    ]
    try:
        await asyncio.gather(*(_provision_one(jetstream, config) for config in configs))
    except (ServiceUnavailableError, TimeoutError, nats.errors.TimeoutError, nats.errors.NoRespondersError) as error:
        raise BusUnavailable(
            "JetStream does not answer", 1.0, fix="start nats-server with JetStream enabled (-js)"
        ) from error
    except APIError as error:
        raise PermanentError(f"the server refuses our streams: {error.description} ({error.err_code})") from error
    except nats.errors.Error as error:
        raise BusUnavailable(f"cannot set up streams: {error}", 1.0) from error


async def _provision_one(jetstream: JetStreamContext, wanted: api.StreamConfig) -> None:
    name = wanted.name or ""
    try:
        present = (await jetstream.stream_info(name)).config
    except NotFoundError:
        try:
            await jetstream.add_stream(wanted)
            return
        except APIError as error:
            if error.err_code != _NAME_IN_USE:
                raise
            # Another process was faster, perhaps one of another version.
            present = (await jetstream.stream_info(name)).config
    # What an administrator decides (replicas, placement, larger limits) is kept.
    merged = present.evolve(
        subjects=wanted.subjects,
        max_age=wanted.max_age,
        duplicate_window=wanted.duplicate_window,
        max_bytes=max(present.max_bytes or 0, wanted.max_bytes or 0) if (present.max_bytes or -1) > 0 else -1,
        max_msg_size=wanted.max_msg_size,
        max_msgs_per_subject=wanted.max_msgs_per_subject,
        allow_msg_ttl=True if wanted.allow_msg_ttl else present.allow_msg_ttl,
        subject_delete_marker_ttl=wanted.subject_delete_marker_ttl,
    )
    if merged.as_dict() != present.as_dict():
        await jetstream.update_stream(merged)
