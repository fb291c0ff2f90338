"""Real GPUs of this machine, through NVML."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.lib.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as NVML reports it; `uuid` is what CUDA_VISIBLE_DEVICES takes whatever the device order."""

    uuid: str
    model: str
    memory_bytes: int


def discover_gpus() -> tuple[Gpu, ...]:
    """The GPUs of this machine; none where there is no NVIDIA driver.

    Raises:
        Unavailable: when the package nvidia-ml-py is not installed, or the driver is there but does not answer.
    """
    try:
        import pynvml  # only here: most machines that run this have no GPU
    except ImportError as error:
        raise Unavailable("real GPUs need nvidia-ml-py: install clusterwright[local]") from error
    try:
        pynvml.nvmlInit()
    except (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded):
        return ()
    except pynvml.NVMLError as error:
        raise Unavailable(f"NVML does not answer: {error}") from error
    try:
        return tuple(_gpu(pynvml, i) for i in range(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError as error:
        raise Unavailable(f"NVML cannot list the GPUs: {error}") from error
    finally:
        pynvml.nvmlShutdown()


def _gpu(nvml: object, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)  # type: ignore[attr-defined]
    memory = nvml.nvmlDeviceGetMemoryInfo(handle).total  # type: ignore[attr-defined]
    uuid, model = nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle)  # type: ignore[attr-defined]
    return Gpu(_text(uuid), _text(model), int(memory))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
