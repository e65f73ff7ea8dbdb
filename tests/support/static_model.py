"""A small embedding model on disk, of the kind that model2vec reads: a dozen words in three directions."""

from pathlib import Path

WORDS = {
    "paris": (1.0, 0.0, 0.0), "lutetia": (0.9, 0.1, 0.0), "capital": (0.9, 0.2, 0.0),
    "france": (0.9, 0.0, 0.1), "the": (0.01, 0.01, 0.01), "of": (0.01, 0.01, 0.01), "a": (0.01, 0.01, 0.01),
    "dog": (0.0, 1.0, 0.0), "cat": (0.1, 0.9, 0.0),
}  # fmt: skip


def write_model(folder: Path) -> Path:
    import numpy as np  # noqa: PLC0415  # these are half a second, and few tests need them
    from model2vec import StaticModel  # noqa: PLC0415
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers  # noqa: PLC0415

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0} | {w: i for i, w in enumerate(WORDS, 1)}, "[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    vectors = np.array([(0.0, 0.0, 0.0), *WORDS.values()], dtype=np.float32)
    StaticModel(vectors, tokenizer).save_pretrained(folder)
    return folder
