"""LibreTranslate's API: /translate, /languages, /detect and /frontend/settings, as its clients use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from t2tlite.programs.serving.detection import Detected, detect
from t2tlite.programs.serving.errors import RequestError
from t2tlite.programs.serving.html_text import HtmlText
from t2tlite.programs.serving.languages import language_name
from t2tlite.programs.serving.own_api import Translating
from t2tlite.programs.serving.served_model import Catalogue
from t2tlite.programs.serving.service import Service

if TYPE_CHECKING:
    from fastapi import Request

AUTO = "auto"
FORMATS = ("text", "html")
SHOWN = 40  # characters of a value in a message


def languages(catalogue: Catalogue) -> list[dict[str, Any]]:
    """GET /languages."""
    found = catalogue.languages()
    return [{"code": code, "name": language_name(code), "targets": targets} for code, targets in found.items()]


def settings(service: Service, catalogue: Catalogue) -> dict[str, Any]:
    """GET /frontend/settings."""
    translators = [model for model in catalogue.models if not model.parses]
    pair = (translators[0].source, translators[0].target) if translators else ("", "")
    source, target = ({"code": code, "name": language_name(code)} for code in pair)
    return {
        "apiKeys": bool(service.options.api_key),
        "keyRequired": bool(service.options.api_key),
        "charLimit": service.options.max_characters,
        "filesTranslation": False,
        "frontendTimeout": 500,
        "language": {"source": source, "target": target},
        "suggestions": False,
        "supportedFilesFormat": [],
    }


async def translate(service: Service, request: Request, fields: dict[str, Any]) -> dict[str, Any]:
    """POST /translate."""
    catalogue = service.catalogue
    q, source, target = (_required(fields, name) for name in ("q", "source", "target"))
    texts = _texts(q)
    form = fields.get("format") or "text"
    if form not in FORMATS:
        raise RequestError(400, f"format must be text or html. Received: {str(form)[:SHOWN]!r}.")
    alternatives = _whole_number(fields.get("alternatives") or 0)
    service.check_characters(texts, status=400)  # LibreTranslate's status
    if not (isinstance(source, str) and isinstance(target, str)):
        raise RequestError(400, "source and target must be language codes, such as en.")
    detected = None
    if source == AUTO:
        detected = _detect_source(catalogue, texts, target)
        source = detected.language
    model = catalogue.translator(source, target)
    documents = [HtmlText(text) if form == "html" else None for text in texts]
    parts = [document.texts if document else [text] for text, document in zip(texts, documents, strict=True)]
    work = Translating(model, [part for text in parts for part in text], {"n_best": 1 + alternatives})
    found = await service.compute(request, work.work, work.sentences, work.tokens)
    made = []
    for rank in range(1 + alternatives):
        whole = iter(work.whole([outputs[min(rank, len(outputs) - 1) :] for outputs in found]))
        made.append(_rejoined(documents, [[next(whole)["text"] for _ in text] for text in parts]))
    answer: dict[str, Any] = {"translatedText": made[0] if isinstance(q, list) else made[0][0]}
    if detected:
        answer["detectedLanguage"] = [detected._asdict()] * len(texts) if isinstance(q, list) else detected._asdict()
    if alternatives:
        others = [list(each) for each in zip(*made[1:], strict=True)]
        answer["alternatives"] = others if isinstance(q, list) else others[0]
    return answer


def detect_language(service: Service, fields: dict[str, Any]) -> list[dict[str, Any]]:
    """POST /detect: which of the languages served a text is in, most likely first."""
    q = _required(fields, "q")
    texts = _texts(q)
    service.check_characters(texts, status=400)
    return [found._asdict() for found in detect("\n".join(texts), list(service.catalogue.languages()))]


def _detect_source(catalogue: Catalogue, texts: Sequence[str], target: str) -> Detected:
    """The language from which to translate; RequestError 400 if several are possible and nothing tells which."""
    possible = [code for code, targets in catalogue.languages().items() if target in targets]
    if not possible:
        raise RequestError(400, f"No model translates to {target[:SHOWN]}. GET /languages lists the languages.")
    found = detect("\n".join(texts), possible)[0]
    if not found.confidence and len(possible) > 1:
        raise RequestError(400, f"The language of the text cannot be detected. Set source to {' or '.join(possible)}.")
    return found


def _rejoined(documents: Sequence[HtmlText | None], parts: Sequence[list[str]]) -> list[str]:
    return [document.join(own) if document else own[0] for document, own in zip(documents, parts, strict=True)]


def _required(fields: dict[str, Any], name: str) -> Any:
    if not fields.get(name):
        raise RequestError(400, f"The field {name} is required. It is missing or empty.")
    return fields[name]


def _texts(q: Any) -> list[str]:
    texts = q if isinstance(q, list) else [q]
    if not all(isinstance(text, str) for text in texts):
        raise RequestError(400, "q must be a string or a list of strings.")
    return texts


def _whole_number(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 6:
        return int(value)
    if type(value) is int and value >= 0:
        return value
    raise RequestError(400, f"alternatives must be a whole number of 0 or more. Received: {str(value)[:SHOWN]!r}.")
