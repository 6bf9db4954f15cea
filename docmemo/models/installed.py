"""What is installed, without importing it: package versions, digests of model files and of modules' source."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from docmemo.errors import ModelLockError
from docmemo.fingerprint import digest_file, source_digest

_REINSTALL = "Install the project's dependencies again (`make demo` or `pip install -e .`)."


def package_version(name: str) -> str:
    """Version of an installed distribution.

    Raises:
        ModelLockError: if it is not installed.
    """
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError as error:
        raise ModelLockError(f"The package {name} is not installed.", remedy=_REINSTALL) from error


def versions(*names: str) -> str:
    """Versions of distributions as one text, e.g. "bm25s 0.3.16, PyStemmer 3.1.0"."""
    return ", ".join(f"{name} {package_version(name)}" for name in names)


def package_folder(name: str) -> Path:
    """Folder of an installed top-level package; the package is found, not imported.

    Raises:
        ModelLockError: if it is not installed.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModelLockError(f"The package {name} is not installed.", remedy=_REINSTALL)
    return Path(spec.origin).parent


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, modified_ns: int) -> str:
    del size, modified_ns  # part of the cache key only: a replaced file is read again
    return digest_file(path)


def file_digests(files: list[Path]) -> dict[str, str]:
    """File name to sha256.

    Raises:
        ModelLockError: if there are none or one is missing.
    """
    if not files:
        raise ModelLockError("No model files were found in the installed packages.", remedy=_REINSTALL)
    digests = {}
    for path in sorted(files):
        try:
            status = path.stat()
            digests[path.name] = _file_digest(path, status.st_size, status.st_mtime_ns)
        except OSError as error:
            raise ModelLockError(f"The model file {path} cannot be read: {error}.", remedy=_REINSTALL) from error
    return digests


def pymupdf_layout_files() -> list[Path]:
    """Model files of PyMuPDF's layout analyser (which of them it loads depends on the page and its version)."""
    folder = package_folder("pymupdf") / "layout" / "resources" / "onnx"
    return sorted(p for p in folder.glob("*") if p.suffix in (".onnx", ".yaml"))


def _yaml(path: Path) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError) as error:
        raise ModelLockError(f"{path} cannot be read: {error}.", remedy=_REINSTALL) from error


def rapidocr_files() -> list[Path]:
    """The three ONNX files (detection, classification, recognition) that RapidOCR loads by default.

    Found the way RapidOCR finds them: its config.yaml names version, language and size; default_models.yaml leads
    from there to a file name; the file is in its models folder.

    Raises:
        ModelLockError: if these files are not as rapidocr 3.10 has them.
    """
    folder = package_folder("rapidocr")
    config, models = _yaml(folder / "config.yaml"), _yaml(folder / "default_models.yaml")
    files = []
    try:
        for section in ("Det", "Cls", "Rec"):
            chosen = config[section]
            version, task, engine = chosen["ocr_version"], chosen["task_type"], chosen["engine_type"]
            routes = models["model_routes"][version][task][chosen["model_type"]]
            key = next(
                r["model_key"]
                for r in routes
                if chosen["lang_type"] == r["lang"] or chosen["lang_type"] in r["supported_langs"]
            )
            files.append(folder / "models" / PurePosixPath(models[engine][version][task][key]["model_dir"]).name)
    except (KeyError, TypeError, StopIteration) as error:
        raise ModelLockError(
            f"rapidocr {package_version('rapidocr')} describes its models in a way this version does not know.",
            remedy="Install rapidocr 3.10.",
        ) from error
    return files


def plugin_source(module_name: str) -> tuple[str, str]:
    """Digest of a plugin module's code, and its distribution's name and version ('' when it has none).

    The module's parent packages are imported, the module itself is not.

    Raises:
        ModelLockError: if the module cannot be found or is not Python source.
    """
    remedy = "Install its package, or put its folder on PYTHONPATH."
    try:
        spec = importlib.util.find_spec(module_name)
    except (ImportError, ValueError) as error:
        raise ModelLockError(f"The plugin module {module_name} cannot be found: {error}.", remedy=remedy) from error
    if spec is None or spec.origin is None:
        raise ModelLockError(f"The plugin module {module_name} cannot be found.", remedy=remedy)
    path = Path(spec.origin)
    try:
        code = source_digest(path.read_text(encoding="utf-8")) if path.suffix == ".py" else digest_file(path)
    except (OSError, SyntaxError, ValueError) as error:
        raise ModelLockError(f"The plugin module {path} cannot be read: {error}.", remedy=remedy) from error
    owners = importlib.metadata.packages_distributions().get(module_name.partition(".")[0], [])
    return code, ", ".join(f"{name} {package_version(name)}" for name in sorted(set(owners)))
