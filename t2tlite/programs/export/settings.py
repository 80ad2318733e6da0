"""The settings of an export, the same for all formats."""

from __future__ import annotations

import dataclasses

from t2tlite.config import DecodeHParams


@dataclasses.dataclass(frozen=True)
class Settings:
    """The user's choices for an export."""

    decoding: DecodeHParams  # the export's defaults, if it includes the search
    quantization: str = ""  # of the weights; "" leaves them as they are

    def refuse_quantization(self, name: str) -> None:
        """Raises ValueError if a quantization was chosen with the format `name`, which has none."""
        if self.quantization:
            raise ValueError(
                f"--quantization goes with --format=ctranslate2. Received: --quantization={self.quantization} with "
                f"--format={name}, which keeps the weights as they are. Leave it out."
            )
