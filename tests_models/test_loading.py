"""What the loader accepts and refuses. Weights that do not fit must never end up in a result."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from docmemo.config import EmbedParams
from docmemo.errors import ModelLoadError
from docmemo.models import colqwen
from docmemo.models.colqwen import ColQwen, import_torch
from docmemo.models.colqwen_check import known_pages
from docmemo.models.colqwen_files import find_weights, identify

Tensors = dict[str, Any]


def load(folder: Path) -> ColQwen:
    return ColQwen(find_weights(EmbedParams(model=str(folder))), "cpu")


def changed(source: Path, target: Path, change: Callable[[Tensors], Tensors], name: str = "model") -> Path:
    """A copy of a saved model with other tensors."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(source, target)
    path = target / f"{name}.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})
    return target


def without(key: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {name: tensor for name, tensor in tensors.items() if name != key}


def test_a_saved_model_loads_whole_and_says_what_was_checked(model: ColQwen) -> None:
    assert (model.device, model.precision) == ("cpu", "float32")
    assert "batch and single agree" in model.check
    assert "order of known pages not checked" in model.check


def test_the_same_folder_gives_the_same_vectors(model: ColQwen, tiny_folder: Path) -> None:
    again = load(tiny_folder)
    np.testing.assert_array_equal(model.embed_query("hello"), again.embed_query("hello"))


@pytest.mark.parametrize("key", ["custom_text_proj.weight", "visual.blocks.0.attn.qkv.weight"])
def test_a_missing_weight_is_refused(tiny_folder: Path, tmp_path: Path, key: str) -> None:
    with pytest.raises(ModelLoadError, match=f"1 missing.*{key}"):
        load(changed(tiny_folder, tmp_path / "m", without(key)))


def test_a_weight_left_over_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    torch = import_torch()
    folder = changed(tiny_folder, tmp_path / "m", lambda tensors: {**tensors, "surplus.weight": torch.zeros(2)})
    with pytest.raises(ModelLoadError, match=r"not part of the model \(surplus.weight\)"):
        load(folder)


def test_a_weight_of_another_shape_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    torch = import_torch()
    key = "custom_text_proj.bias"
    with pytest.raises(ModelLoadError, match=r"1 of another shape \(custom_text_proj.bias\)"):
        load(changed(tiny_folder, tmp_path / "m", lambda tensors: {**tensors, key: torch.zeros(3)}))


def test_damaged_weights_are_one_error_that_names_the_folder(tiny_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_folder, tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(ModelLoadError, match="cannot be loaded"):
        load(tmp_path / "m")


def test_a_model_that_does_not_call_itself_untrained_has_to_rank_the_known_pages(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_folder, tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != colqwen.UNTRAINED}))
    asked: list[object] = []
    monkeypatch.setattr(colqwen, "check_order", lambda encoder: asked.append(encoder) or "asked")
    assert "asked" in load(tmp_path / "m").check
    assert len(asked) == 1


def test_weights_that_give_no_finite_numbers_are_refused(tiny_folder: Path, tmp_path: Path) -> None:
    key = "custom_text_proj.bias"
    folder = changed(tiny_folder, tmp_path / "m", lambda t: {**t, key: t[key] * float("nan")})
    with pytest.raises(ModelLoadError, match="not finite"):
        load(folder)


def test_an_adapter_changes_its_base_and_is_complete(model: ColQwen, adapter_folder: Path) -> None:
    made = load(adapter_folder)
    assert not np.allclose(made.embed_query("hello"), model.embed_query("hello"), atol=1e-3)
    assert " on tiny-colqwen@sha256:" in identify(EmbedParams(model=str(adapter_folder))).revision


def test_an_adapter_loads_as_from_pretrained_loads_it(adapter_folder: Path) -> None:
    """The loader takes base and adapter apart to check both; the result has to be the ordinary one."""
    from colpali_engine.models import ColQwen2_5

    ordinary = ColQwen2_5.from_pretrained(adapter_folder, dtype=import_torch().float32)
    made = load(adapter_folder)
    found = dict(made._model.named_parameters())
    expected = dict(ordinary.named_parameters())
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name].numpy(), expected[name].detach().numpy()) for name in expected)


def test_an_adapter_with_the_names_of_published_ones_loads_the_same(adapter_folder: Path, tmp_path: Path) -> None:
    def rename(tensors: Tensors) -> Tensors:
        new, old = "base_model.model.language_model.layers", "base_model.model.model.layers"
        return {name.replace(new, old): tensor for name, tensor in tensors.items()}

    old = changed(adapter_folder, tmp_path / "old", rename, "adapter_model")
    np.testing.assert_array_equal(load(old).embed_query("hello"), load(adapter_folder).embed_query("hello"))


def test_an_adapter_that_lacks_a_weight_is_refused(adapter_folder: Path, tmp_path: Path) -> None:
    key = "base_model.model.custom_text_proj.lora_A.weight"
    with pytest.raises(ModelLoadError, match="1 missing"):
        load(changed(adapter_folder, tmp_path / "m", without(key), "adapter_model"))


def test_an_adapter_whose_base_lacks_a_weight_is_refused(
    adapter_folder: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    base = changed(tiny_folder, tmp_path / "base", without("custom_text_proj.weight"))
    shutil.copytree(adapter_folder, tmp_path / "adapter")
    path = tmp_path / "adapter" / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "base_model_name_or_path": str(base)}))
    with pytest.raises(ModelLoadError, match=r"weights of base.*1 missing.*custom_text_proj.weight"):
        load(tmp_path / "adapter")


def test_in_half_precision_every_weight_of_base_and_adapter_is_in_half_precision(adapter_folder: Path) -> None:
    """What a GPU gets; the arithmetic itself is tried on the CPU, which can do it slowly."""
    torch = import_torch()
    weights = find_weights(EmbedParams(model=str(adapter_folder)))
    made, processor = colqwen._load(torch, weights, "cpu", torch.bfloat16)
    assert {parameter.dtype for parameter in made.parameters()} == {torch.bfloat16}
    with torch.inference_mode():
        output = made(**processor.process_images(known_pages()))
    assert output.dtype == torch.bfloat16


def test_weights_that_stay_in_another_precision_are_refused(adapter_folder: Path) -> None:
    torch = import_torch()
    weights = find_weights(EmbedParams(model=str(adapter_folder)))
    made, _ = colqwen._load(torch, weights, "cpu", torch.float32)
    made.custom_text_proj.to(torch.bfloat16)
    with pytest.raises(ModelLoadError, match="bfloat16, float32, not as float32"):
        colqwen._require_dtype(made, torch.float32, weights)


def test_a_gpu_that_is_not_there_is_said_so(tiny_folder: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"names cuda:99.*DOCMEMO_DEVICE=cpu"):
        ColQwen(find_weights(EmbedParams(model=str(tiny_folder))), "cuda:99")


def test_one_process_loads_a_model_once(tiny_folder: Path) -> None:
    weights = find_weights(EmbedParams(model=str(tiny_folder)))
    assert colqwen.shared(weights, "cpu") is colqwen.shared(weights, "cpu")


def test_nothing_of_torch_is_imported_before_a_model_is_needed() -> None:
    """The command line and every stage import these modules."""
    code = (
        "import sys, docmemo.models.colqwen_files, docmemo.pipeline.page_vectors, docmemo.models.colqwen_queries;"
        "print([m for m in ('torch', 'transformers', 'torchvision', 'colpali_engine') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
