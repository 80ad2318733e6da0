"""PyTorch: training torch.nn.Transformer with the paper's embeddings, label smoothing
and Adam.

    python -m peers.torch_train JOB --dtype=bfloat16        # in the folder benchmarks

Runs on the GPU if PyTorch sees one. bfloat16 is torch.autocast; products of float32 on
a GPU are computed in TF32, as TensorFlow computes them. nn.Transformer also has dropout
on attention weights and inside the feed-forward layers.
"""

# R rows, S source length, T target length, D hidden size

from __future__ import annotations

import math

import numpy as np
import torch
from program import CORES, EOS, PAD, Job, measure_training, peer_arguments
from torch import nn

MAX_POSITIONS = 1024


class Transformer(nn.Module):
    """nn.Transformer with sinusoid positions, and one matrix for source, target and
    softmax.
    """

    def __init__(self, job: Job) -> None:
        super().__init__()
        size = job.hidden_size
        self.embedding = nn.Embedding(job.vocab_size, size, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=size**-0.5)
        self.layers = nn.Transformer(
            size,
            job.num_heads,
            job.num_layers,
            job.num_layers,
            job.filter_size,
            dropout=0.1,
            batch_first=True,
        )
        self.dropout = nn.Dropout(0.1)
        angles = torch.arange(MAX_POSITIONS)[:, None] / 10_000 ** (
            torch.arange(0, size, 2) / size
        )
        self.register_buffer(
            "positions", torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        )

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """[R, T] -> [R, T, D]"""
        scaled = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(scaled + self.positions[: ids.shape[1]])

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """[R, S] and [R, T] -> logits [R, T, V] of each target token, given those
        before it.
        """
        start = torch.full_like(targets[:, :1], EOS)
        previous = torch.cat([start, targets[:, :-1]], dim=1)
        length = targets.shape[1]
        states = self.layers(
            self.embed(inputs),
            self.embed(previous),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=inputs == PAD,
            memory_key_padding_mask=inputs == PAD,
            tgt_is_causal=True,
        )
        return nn.functional.linear(states, self.embedding.weight)


def main() -> None:
    """Trains on the batches of the job."""
    job, dtype = peer_arguments(__doc__, ["float32", "bfloat16"])
    torch.set_num_threads(CORES)
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Transformer(job).to(device)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9
    )

    def step(inputs: np.ndarray, targets: np.ndarray) -> float:
        sources = torch.from_numpy(inputs).long().to(device)
        goals = torch.from_numpy(targets).long().to(device)
        with torch.autocast(device, torch.bfloat16, enabled=dtype == "bfloat16"):
            logits = model(sources, goals)
            loss = nn.functional.cross_entropy(
                logits.float().flatten(0, 1),
                goals.flatten(),
                ignore_index=PAD,
                label_smoothing=0.1,
            )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    measure_training(f"PyTorch {torch.__version__}", dtype, job, step)
    if device == "cuda":
        peak = torch.cuda.max_memory_allocated() / 2**20
        print(f"Peak memory of the GPU: {peak:,.0f} MB")


if __name__ == "__main__":
    main()
