"""Answers `probe`, `sample` and `hand-over` lines with JSON, from the vendor file on whatever NVML the loader finds."""

import dataclasses
import json
import sys

from oarlock_accelerators.vendors.nvidia import NvidiaVendor


def main() -> None:
    vendor = NvidiaVendor()
    for line in sys.stdin:
        match line.strip():
            case "probe":
                answer: object = dataclasses.asdict(vendor.probe())
            case "sample":
                answer = dataclasses.asdict(vendor.sample())
            case "hand-over":
                devices = vendor.probe().devices[:1]
                answer = [dataclasses.asdict(vendor.container(devices)), dataclasses.asdict(vendor.process(devices))]
            case "close":
                vendor.close()
                answer = "closed"
            case other:
                raise SystemExit(f"unknown request {other!r}")
        print(json.dumps(answer), flush=True)


main()
