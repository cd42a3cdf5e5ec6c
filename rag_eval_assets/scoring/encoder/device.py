"""Where a model computes: found without importing torch, so that keys are known before anything heavy is loaded."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rag_eval_assets.errors import ConfigurationError

VARIABLE = "RAG_EVAL_DEVICE"
"""Environment variable that names the device: auto, cpu, cuda or mps."""

CHOICES = ("auto", "cpu", "cuda", "mps")

_GPUS = Path("/proc/driver/nvidia/gpus")
_CPUINFO = Path("/proc/cpuinfo")
_INSTRUCTIONS = ("avx", "avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_bf16", "asimd", "sve")
"""Flags by which numeric libraries choose among kernels that round differently."""

_KERNEL_VARIABLES = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
"""Environment variables by which a person narrows that choice."""


@dataclass(frozen=True)
class Device:
    """A device that a model computes on.

    Attributes:
        kind: cpu, cuda or mps; torch's name of it.
        name: what tells devices apart that may round differently: instruction sets, or the GPU's name.
        note: why it is not the device that was asked for; None where it is.
    """

    kind: str
    name: str
    note: str | None = None

    def describe(self) -> dict[str, Any]:
        """The device as a report names it."""
        return {"device": self.kind, "device_name": self.name, **({"device_note": self.note} if self.note else {})}


def find_device(asked: str | None = None) -> Device:
    """The device to compute on.

    Args:
        asked: auto, cpu, cuda or mps; by default what `RAG_EVAL_DEVICE` says, else auto: the GPU where torch has one.

    Raises:
        ConfigurationError: there is no such choice.
    """
    choice = asked or os.environ.get(VARIABLE) or CHOICES[0]
    if choice not in CHOICES:
        raise ConfigurationError(f"{VARIABLE} is {choice!r}", fix=f"Use one of {', '.join(CHOICES)}")
    if choice in {"auto", "cuda"} and _cuda_is_likely() and _torch_has("cuda"):
        return Device("cuda", _gpu_name())
    if choice in {"auto", "mps"} and _mps_is_likely() and _torch_has("mps"):
        return Device("mps", platform.processor() or platform.machine())
    note = f"{choice} was asked for, and torch finds no such device" if choice in {"cuda", "mps"} else None
    return Device("cpu", instructions(), note)


def _cuda_is_likely() -> bool:
    """Without torch: a driver, and a torch that was not built for the CPU alone. Only then is torch asked."""
    try:
        return not version("torch").endswith("+cpu") and (_GPUS.is_dir() or sys.platform == "win32")
    except PackageNotFoundError:
        return False


def _mps_is_likely() -> bool:
    return sys.platform == "darwin" and platform.machine() == "arm64"


@cache
def _torch_has(kind: str) -> bool:
    import torch

    return torch.cuda.is_available() if kind == "cuda" else torch.backends.mps.is_available()


@cache
def _gpu_name() -> str:
    import torch

    return torch.cuda.get_device_name()


@cache
def instructions() -> str:
    """Vendor and instruction sets of the processor, and the environment's limits on them, as one line."""
    found = {"vendor_id": platform.machine(), "flags": ""}
    try:
        for line in _CPUINFO.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            name = {"Features": "flags", "CPU implementer": "vendor_id"}.get(name.strip(), name.strip())
            if name in found:
                found[name] = value.strip()
            if not line.strip():
                break
    except OSError:
        pass
    flags = set(found["flags"].split())
    limits = [f"{name}={os.environ[name]}" for name in _KERNEL_VARIABLES if name in os.environ]
    return " ".join([platform.machine(), found["vendor_id"], *(f for f in _INSTRUCTIONS if f in flags), *limits])
