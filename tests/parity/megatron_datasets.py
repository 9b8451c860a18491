"""Megatron-Core's dataset code (the package megatron-core) without the rest of the package and without PyTorch. The dataset
modules compute with numpy and their own C++; what they name besides (a logger, base classes, types) is stood in for."""

import importlib.metadata
import importlib.util
import logging
import os
import sys
import types

logging.disable(logging.INFO)


def load():
    """Makes `import megatron.core.datasets...` work; returns the version of the package."""
    spec = importlib.util.find_spec("megatron")
    if spec is None:
        raise ImportError("megatron-core is not installed")
    folder = os.path.join(list(spec.submodule_search_locations)[0], "core")

    core = types.ModuleType("megatron.core")
    core.__path__ = [folder]
    sys.modules["megatron.core"] = core

    utils = types.ModuleType("megatron.core.utils")
    utils.log_single_rank = lambda logger, *arguments, **options: None
    sys.modules["megatron.core.utils"] = utils

    tokenizers = types.ModuleType("megatron.core.tokenizers")
    tokenizers.MegatronTokenizerBase = object
    sys.modules["megatron.core.tokenizers"] = tokenizers

    def module(name, **members):
        result = types.ModuleType(name)
        result.__dict__.update(members)
        sys.modules[name] = result
        return result

    data = module("torch.utils.data", Dataset=object)
    distributed = module("torch.distributed", is_initialized=lambda: False, get_rank=lambda: 0)
    module("torch", Tensor=object, utils=module("torch.utils", data=data), distributed=distributed)
    return importlib.metadata.version("megatron-core")


class Tokenizer:
    """All that GPTDataset asks of one."""

    def __init__(self, vocab_size):
        self.vocab_size = vocab_size
        self.eod = 0
        self.pad = -1
        self.unique_identifiers = {"class": "Tokenizer"}


def write(prefix, documents, dtype=None):
    """Writes PREFIX.bin/.idx; `documents` is a list of lists of sequences (lists of token numbers)."""
    import numpy
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=dtype or numpy.uint16)
    for sequences in documents:
        tokens = [token for sequence in sequences for token in sequence]
        builder.add_document(tokens, [len(sequence) for sequence in sequences])
    builder.finalize(prefix + ".idx")


def splits(arguments):
    """The train, valid and test sets (or None) for a case: a dictionary with data_path or the three per-split paths,
    split, seq_length, seed, samples [train, valid, test]."""
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.utils import get_blend_from_list

    per_split = [arguments.get(key) for key in ("train_data_path", "valid_data_path", "test_data_path")]
    blends = {}
    if any(per_split):
        blends["blend_per_split"] = [get_blend_from_list(paths) for paths in per_split]
    else:
        blends["blend"] = get_blend_from_list(arguments["data_path"])
        blends["split"] = arguments["split"]
    config = GPTDatasetConfig(
        random_seed=arguments["seed"],
        sequence_length=arguments["seq_length"],
        path_to_cache=arguments["cache"],
        tokenizer=Tokenizer(65000),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
        **blends,
    )
    return BlendedMegatronDatasetBuilder(GPTDataset, arguments["samples"], lambda: True, config).build()


def sample(dataset, index):
    """seq_length + 1 token numbers, before they are made tensors."""
    if hasattr(dataset, "dataset_sample_index"):
        return sample(dataset.datasets[dataset.dataset_index[index]], dataset.dataset_sample_index[index])
    return dataset._query_document_sample_shuffle_indices(index)[0].tolist()
