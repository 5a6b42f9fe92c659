"""Tiny GGUF models with random weights, made on the spot: other architectures, vocabularies and chat templates than
the embedded model's. Their text is noise; what is tested is that nothing works for one model only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np

WIDTH, HEADS, LAYERS, HIDDEN = 64, 4, 2, 128


@dataclass(frozen=True)
class Family:
    """A chat template with the special tokens that it uses, as the family's published files have them."""

    template: str
    specials: tuple[str, ...]
    end: str
    """The token that ends a turn."""
    bos: str = ""
    spm: bool = False
    """A SentencePiece vocabulary (else byte-level BPE)."""
    architecture: str = "qwen2"
    user_defined: tuple[str, ...] = ()
    """Those of `specials` that the files declare user-defined rather than control."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Those of another kind of token: `normal` or `unused`."""


CHATML = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
QWEN3 = (
    "{% for message in messages %}{% set content = message.content %}{% if message.role == 'assistant' and "
    "'</think>' in content %}{% set content = content.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "{{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{- '<|im_start|>assistant\n' }}{% if enable_thinking is defined and enable_thinking is false %}"
    "{{- '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}"
)
LLAMA3 = (
    "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + "
    "message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}"
    "{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if message['role'] == 'assistant' %}{% set role = 'model' %}{% else %}"
    "{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}"
    "{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}{% for message in rest %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% if message['role'] == 'user' %}{% if loop.first and system is defined %}"
    "{{ '[INST] ' + system + '\n\n' + message['content'] + '[/INST]' }}{% else %}"
    "{{ '[INST] ' + message['content'] + '[/INST]' }}{% endif %}{% else %}{{ ' ' + message['content'] + eos_token }}"
    "{% endif %}{% endfor %}"
)
PHI3 = (
    "{% for message in messages %}{% if message['role'] == 'system' %}"
    "{{'<|system|>\n' + message['content'] + '<|end|>\n'}}"
    "{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}"
    "{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"
)
FAMILIES = {
    "qwen2.5": Family(CHATML, ("<|endoftext|>", "<|im_start|>", "<|im_end|>"), "<|im_end|>"),
    "qwen3": Family(
        QWEN3,
        ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"),
        "<|im_end|>",
        user_defined=("<think>", "</think>"),
    ),
    "llama-3": Family(
        LLAMA3,
        ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        "<|eot_id|>",
        bos="<|begin_of_text|>",
        architecture="llama",
    ),
    "gemma-2": Family(
        GEMMA,
        ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
        "<end_of_turn>",
        bos="<bos>",
        spm=True,
        architecture="llama",
        user_defined=("<start_of_turn>", "<end_of_turn>"),
    ),
    "mistral-v0.3": Family(
        MISTRAL, ("<s>", "</s>", "[INST]", "[/INST]"), "</s>", bos="<s>", spm=True, architecture="llama"
    ),
    "phi-3": Family(
        PHI3,
        ("<s>", "<|endoftext|>", "<|assistant|>", "<|user|>", "<|system|>", "<|end|>"),
        "<|end|>",
        bos="<s>",
        spm=True,
        architecture="llama",
    ),
}


def write(path: Path, family: Family, seed: int = 1, kind: str = "F32") -> Path:
    """A model file of a few hundred kilobytes, with matrices of a type that the package gguf can write."""
    writer = gguf.GGUFWriter(str(path), family.architecture)
    writer.add_name("tiny")
    writer.add_file_type(gguf.LlamaFileType["ALL_F32" if kind == "F32" else f"MOSTLY_{kind}"])
    writer.add_block_count(LAYERS)
    writer.add_context_length(4096)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS // 2)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10_000)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    count = _vocabulary(writer, family)
    writer.add_chat_template(family.template)
    _weights(writer, family, count, np.random.default_rng(seed), kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _vocabulary(writer: gguf.GGUFWriter, family: Family) -> int:
    kinds = gguf.TokenType
    normal = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))] if family.spm else list(_byte_characters())
    words = ["\u2581", "he", "ll"] if family.spm else ["he"]
    types = [kinds.UNKNOWN, *[kinds.BYTE] * 256] if family.spm else [kinds.NORMAL] * 256
    tokens = [*normal, *words]
    types += [kinds.NORMAL] * len(words)
    if family.spm:
        letters = [chr(code) for code in range(33, 127)]
        tokens += letters
        types += [kinds.NORMAL] * len(letters)
    first = len(tokens)
    tokens += family.specials
    named = dict.fromkeys(family.user_defined, "user_defined") | dict(family.others)
    types += [kinds[named.get(name, "control").upper()] for name in family.specials]
    writer.add_tokenizer_model("llama" if family.spm else "gpt2")
    writer.add_tokenizer_pre("default" if family.spm else "qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if family.spm:
        writer.add_token_scores([0.0 if index >= first else -float(index) for index in range(len(tokens))])
    else:
        writer.add_token_merges(["h e"])
    if family.bos:
        writer.add_bos_token_id(tokens.index(family.bos))
    writer.add_add_bos_token(bool(family.bos))
    if family.spm:
        writer.add_add_space_prefix(False)
    writer.add_eos_token_id(tokens.index(family.end))
    return len(tokens)


def _byte_characters() -> list[str]:
    """The 256 characters that stand for bytes in byte-level BPE (GPT-2's table)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def _weights(writer: gguf.GGUFWriter, family: Family, count: int, rng: np.random.Generator, kind: str) -> None:
    def add(name: str, *shape: int) -> None:
        values = (np.ones(shape) if "norm" in name else rng.normal(0, 0.08, shape)).astype(np.float32)
        if len(shape) == 1 or kind == "F32":
            writer.add_tensor(name, values)
        else:
            of = gguf.GGMLQuantizationType[kind]
            writer.add_tensor(name, gguf.quants.quantize(values, of), raw_dtype=of)

    narrow = WIDTH // 2
    add("token_embd.weight", count, WIDTH)
    add("output_norm.weight", WIDTH)
    add("output.weight", count, WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        for name, out in (("attn_q", WIDTH), ("attn_k", narrow), ("attn_v", narrow)):
            add(f"{block}{name}.weight", out, WIDTH)
            if family.architecture == "qwen2":
                add(f"{block}{name}.bias", out)
        if family.architecture == "qwen3":
            for name in ("attn_q_norm", "attn_k_norm"):
                writer.add_tensor(f"{block}{name}.weight", rng.normal(1, 0.2, WIDTH // HEADS).astype(np.float32))
        add(f"{block}attn_output.weight", WIDTH, WIDTH)
        add(f"{block}attn_norm.weight", WIDTH)
        add(f"{block}ffn_norm.weight", WIDTH)
        add(f"{block}ffn_gate.weight", HIDDEN, WIDTH)
        add(f"{block}ffn_up.weight", HIDDEN, WIDTH)
        add(f"{block}ffn_down.weight", WIDTH, HIDDEN)
