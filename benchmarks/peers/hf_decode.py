"""Hugging Face: beam search with MarianMTModel.generate.

    python -m peers.hf_decode JOB --dtype=bfloat16      # in the folder benchmarks

Weights are random, and every sentence takes exactly the job's steps.
"""

from __future__ import annotations

import numpy as np
import torch
import transformers
from program import CORES, EOS, PAD, measure_decoding, peer_arguments


def main() -> None:
    """Decodes the batches of the job."""
    job, dtype = peer_arguments(__doc__, ["float32", "bfloat16"])
    torch.set_num_threads(CORES)
    torch.manual_seed(1)
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", job.num_layers),
            ("ffn_dim", job.filter_size),
            ("attention_heads", job.num_heads),
        )
    }
    config = transformers.MarianConfig(
        vocab_size=job.vocab_size,
        decoder_vocab_size=job.vocab_size,
        d_model=job.hidden_size,
        activation_function="relu",
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        pad_token_id=PAD,
        eos_token_id=EOS,
        forced_eos_token_id=None,
        decoder_start_token_id=EOS,
        max_position_embeddings=2048,
        **sides,
    )
    model = transformers.MarianMTModel(config).eval().to(getattr(torch, dtype))
    model.generation_config.forced_eos_token_id = None

    def decode(inputs: np.ndarray) -> int:
        ids = torch.from_numpy(inputs).long()
        with torch.inference_mode():
            sequences = model.generate(
                ids,
                attention_mask=(ids != PAD).long(),
                num_beams=job.beam_size,
                length_penalty=0.6,
                do_sample=False,
                min_new_tokens=job.steps,
                max_new_tokens=job.steps,
            )
        return sequences.shape[1] - 1  # less the start of the sequence

    measure_decoding(
        f"Hugging Face transformers {transformers.__version__}", dtype, job, decode
    )


if __name__ == "__main__":
    main()
