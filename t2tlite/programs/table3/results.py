"""What the rows of Table 3 were measured to be: the records of their runs.

A row is an ordinary run. It is finished when training has evaluated dev at the last
step (evaluations.json), and the newest checkpoint has decoded dev with a beam of 4
(decodes/dev.STEP.json, a record like t2t-decoder's).
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence

from t2tlite.config import DecodeHParams, HParams
from t2tlite.data.dataset import Dataset
from t2tlite.data.manifest import RunManifest
from t2tlite.data.splits import DEV
from t2tlite.files.checkpoint_paths import CHECKPOINT_PREFIX
from t2tlite.files.records import Amount, Count
from t2tlite.programs.runs.translator import decode_options
from t2tlite.run_folder import NO_COST, RunFolder
from t2tlite.training.cost import Cost, estimate

BEAM_SIZE = 4


@dataclasses.dataclass(frozen=True)
class RowResult:
    """The result of one run of a row, as table3.json has it."""

    row: str
    problem: str
    vocabulary_sha256: str  # of both vocabularies (RunManifest.vocabulary_sha256)
    hparams: HParams
    seed: int
    steps: Count
    replicas: Count
    perplexity: Amount  # of dev, per token of the vocabulary, without label smoothing
    loss: Amount  # nats per token
    accuracy: Amount
    # of dev, beam 4: sacrebleu's, or of other problems than translation what `metric`
    # names
    bleu: Amount
    bleu_signature: str
    parameters: Count
    seconds: Amount  # in the training loop, over all interruptions, without evaluation
    # of all replicas: tokens trained on times the cost of a token by formula
    training_flops: Amount
    metric: str = "BLEU"

    @property
    def data(self) -> tuple[str, str]:
        """What identifies the data: the problem and its vocabularies."""
        return self.problem, self.vocabulary_sha256


def read_result(run: RunFolder, row: str, dataset: Dataset) -> RowResult | None:
    """The result of a row's run on this data; None if it is not finished. Raises
    ValueError if a record is damaged.
    """
    if not run.exists():
        return None
    hparams = run.hparams()
    manifest = run.manifest()
    steps = hparams.train_steps
    trained_with = run.trained_with()
    decoded = run.decode_record(dev_record_name(run, manifest, steps))
    metrics = _metrics_at(run, steps)
    if not (trained_with and decoded and decoded.signatures and "loss" in metrics):
        return None
    metric, signature = next(iter(decoded.signatures.items()))  # the main one is first
    cost = (run.costs() or [NO_COST])[-1]
    return RowResult(
        row=row,
        problem=manifest.name,
        vocabulary_sha256=manifest.vocabulary_sha256,
        hparams=hparams,
        seed=trained_with.random_seed,
        steps=steps,
        replicas=trained_with.replicas,
        perplexity=metrics.get("perplexity", math.inf),
        loss=metrics["loss"],
        accuracy=metrics.get("accuracy", 0.0),
        bleu=decoded.scores.get(metric, 0.0),
        bleu_signature=signature,
        parameters=cost_of(hparams, dataset).parameters,
        seconds=cost.seconds,
        training_flops=cost.flops,
        metric=metric,
    )


def mean_and_spread(results: Sequence[RowResult], field: str) -> tuple[float, float]:
    """The mean of a field over seeds, and its sample standard deviation, which is 0 if
    there is one seed.
    """
    values = [getattr(result, field) for result in results]
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return statistics.fmean(values), spread


def cost_of(hparams: HParams, dataset: Dataset) -> Cost:
    """The cost of one step with these hparams on this data, by formula."""
    manifest = dataset.manifest
    return estimate(hparams, manifest.vocabulary_sizes, manifest.training.mean_lengths)


def dev_options(manifest: RunManifest) -> DecodeHParams:
    """The problem's decoding defaults with a beam of 4."""
    return decode_options(manifest, f"beam_size={BEAM_SIZE}")


def dev_record_name(run: RunFolder, manifest: RunManifest, step: int) -> str:
    """The name of the record of dev, as t2t-decoder names it."""
    changes = {}
    difference = dev_options(manifest).diff(decode_options(manifest))
    for name, (new, _) in difference.items():
        changes[name] = new
    checkpoint = run.path / f"{CHECKPOINT_PREFIX}-{step}"
    return run.decode_name(DEV, str(checkpoint), changes)


def _metrics_at(run: RunFolder, step: int) -> Mapping[str, float]:
    """The metrics of the evaluation at a step; empty if there was none."""
    for evaluation in run.evaluations():
        if evaluation.step == step:
            return evaluation.metrics
    return {}
