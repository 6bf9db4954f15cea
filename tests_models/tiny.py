"""A ColQwen2.5 of 0.6 million random parameters, saved as the real one is: weights, tokenizer, processor.

Its config.json says `docmemo_untrained`, since a random model ranks pages by chance and the loader's order check
must not be asked of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def tokenizer() -> Any:
    """A byte-level BPE without merges (a token a byte) and the special tokens of Qwen2.5-VL."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        additional_special_tokens=list(SPECIAL[1:]),
    )
    fast.image_token, fast.video_token = "<|image_pad|>", "<|video_pad|>"
    return fast


def config(ids: Any) -> Any:
    """Of the model; `ids` gives the id of a special token."""
    from transformers.models.qwen2_5_vl import Qwen2_5_VLConfig

    return Qwen2_5_VLConfig(
        text_config={
            "vocab_size": 320,
            "hidden_size": 128,
            "intermediate_size": 256,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "bos_token_id": None,
            "eos_token_id": ids("<|im_end|>"),
            "rope_parameters": {"rope_type": "default", "mrope_section": [4, 6, 6], "rope_theta": 1e6},
        },
        vision_config={
            "depth": 2,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_heads": 4,
            "out_hidden_size": 128,
            "fullatt_block_indexes": [1],
        },
        image_token_id=ids("<|image_pad|>"),
        video_token_id=ids("<|video_pad|>"),
        vision_start_token_id=ids("<|vision_start|>"),
        vision_end_token_id=ids("<|vision_end|>"),
        docmemo_untrained=True,
    )


def save(folder: Path, seed: int = 0) -> Path:
    """Write the model to `folder`; equal seeds give equal weights."""
    import torch
    from colpali_engine.models import ColQwen2_5, ColQwen2_5_Processor
    from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    torch.manual_seed(seed)
    tokens = tokenizer()
    model = ColQwen2_5(config(tokens.convert_tokens_to_ids))
    model.save_pretrained(folder)
    ColQwen2_5_Processor(
        image_processor=Qwen2VLImageProcessor(size={"shortest_edge": 3136, "longest_edge": 50176}),
        tokenizer=tokens,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=CHAT_TEMPLATE,
    ).save_pretrained(folder)
    return folder


def save_adapter(folder: Path, base: Path, seed: int = 1) -> Path:
    """Write a LoRA adapter of the model in `base`, with the names that the published adapters have."""
    import torch
    from colpali_engine.models import ColQwen2_5
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    made = get_peft_model(
        ColQwen2_5.from_pretrained(base),
        LoraConfig(
            r=4,
            lora_alpha=8,
            init_lora_weights=False,
            target_modules=r".*(language_model.*(q_proj|v_proj)|custom_text_proj)$",
            base_model_name_or_path=str(base),
        ),
    )
    made.save_pretrained(folder)
    return folder
