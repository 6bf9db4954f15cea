"""A Qwen2.5-VL of random weights, saved as the real one is: `python -m tests_servers.tiny_qwen FOLDER`.

It takes images and answers nonsense; under a JSON schema its nonsense is JSON. That is enough to meet a server's
protocol. Needs transformers and torch, as vLLM's environment has them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests_models.tiny import config, tokenizer

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' or 'image_url' in part %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif 'text' in part %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def save(folder: Path, seed: int = 0) -> Path:
    """Write the model to `folder`; equal seeds give equal weights."""
    import torch
    from transformers import (
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    torch.manual_seed(seed)
    tokens = tokenizer()
    tokens.chat_template = CHAT_TEMPLATE
    settings = config(tokens.convert_tokens_to_ids)
    settings.architectures = ["Qwen2_5_VLForConditionalGeneration"]
    settings.text_config.bos_token_id = None
    settings.text_config.eos_token_id = tokens.eos_token_id
    Qwen2_5_VLForConditionalGeneration(settings).save_pretrained(folder)
    Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(size={"shortest_edge": 3136, "longest_edge": 50176}),
        tokenizer=tokens,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=CHAT_TEMPLATE,
    ).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    save(Path(sys.argv[1]))
